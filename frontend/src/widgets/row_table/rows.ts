import type { TreeRow } from "../../model/tree";

export const ROW_PX = 24;

/** Browsers limit the height of elements; beyond it the scroll bar is scaled. */
const TALLEST_PX = 8_000_000;

export function totalPx(numRows: number): number {
  return Math.min(numRows * ROW_PX, TALLEST_PX);
}

/** Px of rows per px of the scroll bar. */
export function scrollScale(numRows: number, heightPx: number): number {
  const [full, shown] = [numRows * ROW_PX, totalPx(numRows)];
  return shown > heightPx ? (full - heightPx) / (shown - heightPx) : 1;
}

export function firstRow(scrollPx: number, numRows: number, heightPx: number): number {
  const row = Math.floor((scrollPx * scrollScale(numRows, heightPx)) / ROW_PX);
  return Math.max(0, Math.min(row, numRows - 1));
}

interface KeyEffect {
  readonly kind: "select" | "toggle";
  readonly row: number;
}

/** null: not a key of the table. */
export function afterKey(
  key: string,
  rows: ArrayLike<number>,
  selected: number | null,
  pageRows: number,
  nodes: readonly TreeRow[] = [],
): KeyEffect | null {
  const index = selected === null ? -1 : Array.from(rows).indexOf(selected);
  const select = (place: number): KeyEffect | null => {
    const row = rows[Math.min(Math.max(place, 0), rows.length - 1)];
    return row === undefined ? null : { kind: "select", row };
  };
  const places: Readonly<Record<string, number>> = {
    ArrowDown: index + 1,
    ArrowUp: index - 1,
    PageDown: index + pageRows,
    PageUp: index - pageRows,
    Home: 0,
    End: rows.length - 1,
  };
  const place = places[key];
  if (place !== undefined) return select(place);
  const node = nodes[index];
  if (node === undefined) return null;
  const { id, depth, expanded, numChildren } = node;
  const toggle = { kind: "toggle", row: id } as const;
  if (key === "ArrowRight" && numChildren > 0)
    return expanded ? select(index + 1) : toggle;
  if (key !== "ArrowLeft") return null;
  if (expanded) return toggle;
  // The parent.
  return depth === 0
    ? null
    : select(nodes.findLastIndex((row, i) => i < index && row.depth < depth));
}
