/** Scrolling through more rows than a browser lets an element be tall. Pure. */

export const ROW_PX = 22;
/** Browsers give up on taller elements. */
export const TALLEST_PX = 8_000_000;

/** Height of the element that is scrolled. */
export function listPx(numRows: number): number {
  return Math.min(numRows * ROW_PX, TALLEST_PX);
}

/** The first row in sight, with a fraction where rows scroll smoothly. */
export function rowAtScroll(
  scrollPx: number,
  numRows: number,
  heightPx: number,
): number {
  const shown = listPx(numRows);
  const full = numRows * ROW_PX;
  const scale = shown > heightPx ? (full - heightPx) / (shown - heightPx) : 1;
  const row = (scrollPx * scale) / ROW_PX;
  return Math.max(0, Math.min(row, Math.max(0, numRows - heightPx / ROW_PX)));
}

/** Where the list is scrolled to when a row is the first in sight. */
export function scrollOfRow(row: number, numRows: number, heightPx: number): number {
  const shown = listPx(numRows);
  const full = numRows * ROW_PX;
  const scale = shown > heightPx ? (full - heightPx) / (shown - heightPx) : 1;
  return Math.max(0, (row * ROW_PX) / scale);
}

/** A first row that keeps one in sight, moving no further than needed. */
export function rowInSight(first: number, row: number, heightPx: number): number {
  const rows = Math.floor(heightPx / ROW_PX);
  if (row < first) return row;
  if (row > first + rows - 1) return row - rows + 1;
  return first;
}
