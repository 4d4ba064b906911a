import { useState } from "preact/hooks";
import type { Sort } from "../../model/shown_rows";
import { RowTable, type RowTableProps } from "./row_table";
import { useSort } from "./use_sort";

interface SortedTableProps extends Omit<
  RowTableProps,
  "rows" | "sort" | "onSort" | "tree"
> {
  readonly numRows: number;
  readonly usual: Sort;
  readonly shows?: ((row: number) => boolean) | undefined;
  /** The order in the URL, and its setter. */
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
