/** The props of the tree table: rows in sight, and columns that say what a row shows. */

import type { TreeRow } from "../../model/tree";

export interface Cell {
  /** Any text; it is shown as text. */
  readonly text: string;
  /** Said after the text, fainter. */
  readonly note?: string;
  /** Every digit, or why there is none; shown when pointed at. */
  readonly title?: string;
  readonly tone?: "quiet" | "warn" | "bad";
  readonly bar?: CellBar;
}

/** A bar below the number, from one share of the cell's width to another. */
export interface CellBar {
  readonly from: number;
  readonly to: number;
  readonly colour: string;
}

export interface TreeColumn {
  readonly key: string;
  /** May have several lines. */
  readonly title: string;
  /** What the column means; shown when its heading is pointed at. */
  readonly hint?: string;
  /** "#rrggbb" beside the heading. */
  readonly swatch?: string;
  readonly numeric: boolean;
  readonly minWidthPx: number;
  /** The column that holds the tree: indented, with a button to open a row. */
  readonly isTree?: boolean;
  /** False where a click on the heading orders nothing; default true. */
  readonly sortable?: boolean;
  readonly cell: (id: number) => Cell;
}

export interface TreeSort {
  readonly key: string;
  readonly descending: boolean;
}

export interface TreeTableProps {
  readonly label: string;
  readonly columns: readonly TreeColumn[];
  readonly rows: readonly TreeRow[];
  readonly selected: number | null;
  /** A click on a row, or the arrow keys. */
  readonly onSelect: (id: number) => void;
  readonly onToggle: (id: number) => void;
  readonly sort: TreeSort | null;
  /** A click on a heading. */
  readonly onSort: (key: string) => void;
  /** Said where there are no rows. */
  readonly empty: string;
  /** The most it may take; fewer rows take less. */
  readonly heightPx: number;
}
