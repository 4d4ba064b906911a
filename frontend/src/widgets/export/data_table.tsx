/** What a chart shows as a plain table of any length. */

import { useMemo, useState } from "preact/hooks";
import { cellText, type Table, type TableColumn } from "../../model/table";
import { headingWidth } from "../row_table/headings";
import { RowTable, type RowColumn } from "../row_table/row_table";
import { useSort } from "../row_table/use_sort";

/** Rows that say how wide a column is. */
const SAMPLE_ROWS = 100;
const LETTER_PX = 7;
const WIDEST_PX = 420;
const AS_IT_IS = { key: "", descending: true };

/** Numbers with their thousands apart; addresses and all other texts as they are. */
export function numberText(text: string): string {
  if (text === "") return "–";
  const value = text.startsWith("0x") ? NaN : Number(text);
  return Number.isFinite(value)
    ? value.toLocaleString("en-US", { maximumFractionDigits: 9 })
    : text;
}

function rowColumn(column: TableColumn, place: number, numRows: number): RowColumn {
  const { name, values } = column;
  const rows = Array.from({ length: Math.min(numRows, SAMPLE_ROWS) }, (_, row) => row);
  const letters = rows.map((row) => numberText(cellText(column, row)).length);
  const wide = Math.max(
    headingWidth(name, false),
    ...letters.map((n) => n * LETTER_PX),
  );
  return {
    key: String(place),
    title: name,
    numeric: typeof values[0] !== "string",
    width: `minmax(${Math.min(wide, WIDEST_PX)}px, 1fr)`,
    values,
    cell: (row) => ({ text: numberText(cellText(column, row)) }),
  };
}

interface DataTableProps {
  readonly label: string;
  readonly table: Table;
  readonly heightPx: number;
}

export function DataTable({ label, table, heightPx }: DataTableProps) {
  const { columns, numRows } = table;
  const [word, setWord] = useState<string | null>(null);
  const shown = useMemo(
    () => columns.map((column, i) => rowColumn(column, i, numRows)),
    [table],
  );
  const sorted = useSort(shown, numRows, AS_IT_IS, word ?? undefined, setWord);
  return (
    <RowTable
      label={`${label} as a table`}
      columns={shown}
      {...sorted}
      empty="No rows."
      heightPx={heightPx}
      steady
    />
  );
}
