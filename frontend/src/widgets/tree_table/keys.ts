/** What a key does on a tree table; pure. */

import type { TreeRow } from "../../model/tree";

export type KeyEffect =
  | { readonly kind: "select"; readonly id: number }
  | { readonly kind: "toggle"; readonly id: number };

const PAGE_ROWS = 15;

/** null where the key is not the table's. */
export function afterKey(
  key: string,
  rows: readonly TreeRow[],
  selected: number | null,
): KeyEffect | null {
  const at = rows.findIndex((row) => row.id === selected);
  const row = rows[at];
  const select = (index: number): KeyEffect | null => {
    const wanted = rows[Math.min(Math.max(index, 0), rows.length - 1)];
    return wanted === undefined ? null : { kind: "select", id: wanted.id };
  };
  switch (key) {
    case "ArrowDown":
      return select(at + 1);
    case "ArrowUp":
      return select(at < 0 ? 0 : at - 1);
    case "PageDown":
      return select(at + PAGE_ROWS);
    case "PageUp":
      return select(at - PAGE_ROWS);
    case "Home":
      return select(0);
    case "End":
      return select(rows.length - 1);
    case "ArrowRight":
      if (row === undefined || row.numChildren === 0) return null;
      return row.expanded ? select(at + 1) : { kind: "toggle", id: row.id };
    case "ArrowLeft":
      if (row === undefined) return null;
      if (row.expanded) return { kind: "toggle", id: row.id };
      return row.depth === 0 ? null : select(parentIndex(rows, at));
    default:
      return null;
  }
}

/** The row above that is one level higher. */
function parentIndex(rows: readonly TreeRow[], at: number): number {
  const depth = rows[at]?.depth ?? 0;
  let index = at;
  while (index > 0 && (rows[index]?.depth ?? 0) >= depth) index -= 1;
  return index;
}
