/** Tables of tests. */

import type { TableColumn, TableRows } from "../../../api/types.gen";

const NO_TEXTS: readonly string[] = [];

/** A column as the server declares it. */
export function declared(
  column: Pick<TableColumn, "key" | "title" | "help" | "unit"> & Partial<TableColumn>,
): TableColumn {
  return {
    texts: NO_TEXTS,
    numbers: new Float64Array(),
    notes: NO_TEXTS,
    hints: NO_TEXTS,
    absent: "",
    absentText: "",
    bar: "",
    longest: 0,
    sum: null,
    shareOf: "",
    sorts: true,
    ...column,
  };
}

/** A table as the server declares it. */
export function declaredTable(
  table: Pick<TableRows, "title" | "empty" | "columns" | "numRows" | "usual"> &
    Partial<TableRows>,
): TableRows {
  return { summary: "", numAll: table.numRows, colours: NO_TEXTS, ...table };
}
