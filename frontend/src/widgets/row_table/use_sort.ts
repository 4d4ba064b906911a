/** Rows of a `RowTable` in the order of one of its columns. */

import { useMemo } from "preact/hooks";
import {
  clicked,
  sortedRows,
  sortOf,
  sortWord,
  type Sort,
} from "../../model/shown_rows";
import type { RowColumn } from "./row_table";

export interface Sorted {
  readonly rows: readonly number[];
  readonly sort: Sort;
  readonly onSort: (key: string) => void;
}

/**
 * `word` names the order, as `sortWord` writes it, and a click on a heading sets it.
 */
export function useSort(
  columns: readonly RowColumn[],
  numRows: number,
  usual: Sort,
  word: string | undefined,
  setWord: (word: string | null) => void,
): Sorted {
  const keys = columns.flatMap(({ key, values, sortable = values !== undefined }) =>
    sortable ? [key] : [],
  );
  const sort = sortOf(word, keys, usual);
  const { key, descending } = sort;
  const values = columns.find((one) => one.key === key)?.values;
  const rows = useMemo(
    () => sortedRows(numRows, values, descending),
    [numRows, values, descending],
  );
  const onSort = (wanted: string): void => {
    const column = columns.find((one) => one.key === wanted);
    const ascends = column?.ascends ?? column?.numeric === false;
    setWord(sortWord(clicked(sort, wanted, ascends), usual));
  };
  return { rows, sort, onSort };
}
