/** Which rows are in sight where there are too many to be elements. Pure. */

export const ROW_PX = 24;

/** Browsers give up on taller elements; beyond it the scroll bar is scaled. */
const TALLEST_PX = 8_000_000;

/** The height of all rows, as far as a browser can have it. */
export function totalPx(numRows: number): number {
  return Math.min(numRows * ROW_PX, TALLEST_PX);
}

/** Pixels of rows to a pixel of the scroll bar. */
export function scrollScale(numRows: number, heightPx: number): number {
  const [full, shown] = [numRows * ROW_PX, totalPx(numRows)];
  return shown > heightPx ? (full - heightPx) / (shown - heightPx) : 1;
}

/** The first row in sight for a scroll position. */
export function firstRow(scrollPx: number, numRows: number, heightPx: number): number {
  const at = Math.floor((scrollPx * scrollScale(numRows, heightPx)) / ROW_PX);
  return Math.max(0, Math.min(at, numRows - 1));
}
