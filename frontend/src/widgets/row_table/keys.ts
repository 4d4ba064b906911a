/** What a key does on a table; pure. */

import type { TreeRow } from "../../model/tree";

interface KeyEffect {
  readonly kind: "select" | "toggle";
  readonly row: number;
}

/** null where the key is not the table's. `nodes`: the rows as a tree, where they are. */
export function afterKey(
  key: string,
  rows: ArrayLike<number>,
  selected: number | null,
  pageRows: number,
  nodes: readonly TreeRow[] = [],
): KeyEffect | null {
  const at = selected === null ? -1 : Array.from(rows).indexOf(selected);
  const node = nodes[at];
  const select = (place: number): KeyEffect | null => {
    const row = rows[Math.min(Math.max(place, 0), rows.length - 1)];
    return row === undefined ? null : { kind: "select", row };
  };
  switch (key) {
    case "ArrowDown":
      return select(at + 1);
    case "ArrowUp":
      return select(at - 1);
    case "PageDown":
      return select(at + pageRows);
    case "PageUp":
      return select(at - pageRows);
    case "Home":
      return select(0);
    case "End":
      return select(rows.length - 1);
    case "ArrowRight":
      if (node === undefined || node.numChildren === 0) return null;
      return node.expanded ? select(at + 1) : { kind: "toggle", row: node.id };
    case "ArrowLeft":
      if (node === undefined) return null;
      if (node.expanded) return { kind: "toggle", row: node.id };
      return node.depth === 0 ? null : select(parentPlace(nodes, at));
    default:
      return null;
  }
}

/** The row above that is one level higher. */
function parentPlace(nodes: readonly TreeRow[], at: number): number {
  const depth = nodes[at]?.depth ?? 0;
  let place = at;
  while (place > 0 && (nodes[place]?.depth ?? 0) >= depth) place -= 1;
  return place;
}
