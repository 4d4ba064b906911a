import { useEffect, useMemo, useRef } from "preact/hooks";
import { useWidgetTexts } from "../../base/widget_words";
import {
  clicked,
  orderBy,
  searchOf,
  sortedRows,
  sortOf,
  sortWord,
  type Sort,
  type SortValues,
} from "../../model/shown_rows";
import { flatRows, treeRows, type Tree } from "../../model/tree";
import type { RowTableProps } from "./row_table";
import type { RowColumn } from "./columns";

interface SortOrder {
  readonly rows: readonly number[];
  readonly sort: Sort;
  readonly onSort: (key: string) => void;
}

/** `word`: as `sortWord` writes it. */
function orderOf(
  columns: readonly RowColumn[],
  usual: Sort,
  word: string | null | undefined,
  setWord: (word: string | null) => void,
): Omit<SortOrder, "rows"> & { readonly values: SortValues | undefined } {
  const keys = columns.flatMap(({ key, values, sortable = values !== undefined }) =>
    sortable ? [key] : [],
  );
  const sort = sortOf(word ?? undefined, keys, usual);
  return {
    sort,
    values: columns.find((column) => column.key === sort.key)?.values,
    onSort: (wanted) => {
      const column = columns.find((candidate) => candidate.key === wanted);
      const ascends = column?.ascends ?? column?.numeric === false;
      setWord(sortWord(clicked(sort, wanted, ascends), usual));
    },
  };
}

export function useSort(
  columns: readonly RowColumn[],
  numRows: number,
  usual: Sort,
  word: string | null | undefined,
  setWord: (word: string | null) => void,
): SortOrder {
  const { values, ...order } = orderOf(columns, usual, word, setWord);
  const { descending } = order.sort;
  const rows = useMemo(
    () => sortedRows(numRows, values, descending),
    [numRows, values, descending],
  );
  return { ...order, rows };
}

export interface TreeOptions {
  readonly columns: readonly RowColumn[];
  /** Of the table, in the URL. */
  readonly table: string;
  readonly tree: Tree;
  /** Full name by row: open rows stay open when rows change. */
  readonly names: readonly string[];
  /** Searched text by row; default: the names. */
  readonly texts?: readonly string[];
  readonly find: string;
  /** Levels that are open; of a flat list, levels that it has. */
  readonly depth: number;
  /** Also open at first. */
  readonly opened?: readonly number[];
  /** One list, without rows of `isFold`. */
  readonly flat?: boolean;
  readonly isFold?: (row: number) => boolean;
  /** Its ancestors are opened. */
  readonly selected: number | null;
  readonly usual: Sort;
  readonly word: string | null;
  readonly setWord: (word: string | null) => void;
}

export function useTree(
  shown: TreeOptions,
): Omit<SortOrder, "rows"> &
  Required<Pick<RowTableProps, "columns" | "rows" | "selected" | "tree">> {
  const { columns, tree, names, texts = names, find, depth, selected } = shown;
  const { opened = [], flat = false } = shown;
  const [turnedNames, setTurnedNames] = useWidgetTexts("turned", shown.table);
  const turned = useMemo(() => new Set(turnedNames), [turnedNames.join("\n")]);
  const { usual, word, setWord } = shown;
  const { values, sort, onSort } = orderOf(columns, usual, word, setWord);
  const isOpen = (row: number, by: ReadonlySet<string>): boolean =>
    (tree.depth(row) < depth || opened.includes(row)) !== by.has(names[row] ?? "");
  const turn = (before: ReadonlySet<string>, turnedRows: readonly number[]): void => {
    const next = new Set(before);
    for (const row of turnedRows) {
      const name = names[row] ?? "";
      if (!next.delete(name)) next.add(name);
    }
    setTurnedNames([...next]);
  };
  const levels = `${depth} ${flat}`;
  const lastLevels = useRef<string | null>(null);
  useEffect(() => {
    const isFirst = lastLevels.current === null;
    const isSame = isFirst || lastLevels.current === levels;
    lastLevels.current = levels;
    // A link says which rows were open, also above the selected one.
    if (isFirst && turned.size > 0) return;
    const before = isSame ? turned : new Set<string>();
    const above = selected === null || flat ? [] : tree.ancestors(selected);
    const closed = above.filter((row) => !isOpen(row, before));
    if (before !== turned || closed.length > 0) turn(before, closed);
  }, [tree, selected, levels]);
  const rows = useMemo(() => {
    const search = searchOf(find);
    const matches = search && Uint8Array.from(texts, (line) => Number(search(line)));
    const order = values === undefined ? null : orderBy(values, sort.descending);
    if (flat) {
      const all = flatRows(tree, { order, matches }, depth);
      return all.filter(({ id }) => shown.isFold?.(id) !== true);
    }
    return treeRows(tree, { order, matches, isExpanded: (row) => isOpen(row, turned) });
  }, [tree, texts, values, sort.descending, find, depth, flat, turned, opened.length]);
  return {
    columns,
    sort,
    onSort,
    selected,
    rows: useMemo(() => rows.map(({ id }) => id), [rows]),
    tree: { rows, onToggle: (row) => turn(turned, [row]) },
  };
}
