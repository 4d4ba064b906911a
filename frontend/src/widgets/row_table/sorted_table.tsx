/** A `RowTable` that sorts its rows by a click on a heading. */

import { useState } from "preact/hooks";
import type { Sort } from "../../model/shown_rows";
import { RowTable, type RowTableProps } from "./row_table";
import { useSort } from "./use_sort";

export interface SortedTableProps extends Omit<
  RowTableProps,
  "rows" | "sort" | "onSort" | "tree"
> {
  readonly numRows: number;
  readonly usual: Sort;
  /** Whether a row is shown; all are where absent. */
  readonly shows?: ((row: number) => boolean) | undefined;
  /** Where the address says the order: its word, and how it changes. */
  readonly order?: readonly [string | null, (word: string | null) => void];
}

export function SortedTable(props: SortedTableProps) {
  const { columns, numRows, usual, shows } = props;
  const own = useState<string | null>(null);
  const [word, setWord] = props.order ?? own;
  const { rows, ...sorted } = useSort(columns, numRows, usual, word, setWord);
  const shown = shows === undefined ? rows : rows.filter(shows);
  return <RowTable {...props} {...sorted} rows={shown} />;
}
