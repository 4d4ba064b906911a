/** A pixel shows its highest cell, so that a peak one cell wide never vanishes. */

import { pxToX, pxToY, type Viewport } from "../viewport";
import type { Raster } from "./raster";

/** Row-major; row 0 is at y0. */
export interface Grid {
  /** 0: not recorded; less than every value. */
  readonly values: Uint16Array;
  readonly columns: number;
  readonly rows: number;
  readonly x0: number;
  readonly columnWidth: number;
  readonly y0: number;
  readonly rowHeight: number;
}

export interface CellColours {
  /** By value; entry 0: not recorded. */
  readonly lut: Uint32Array;
  readonly absentAccent: number;
}

/** [first, end) of the cells that each pixel touches; empty outside. */
interface Touch {
  readonly first: Int32Array;
  readonly end: Int32Array;
}

function touches(
  sizePx: number,
  numCells: number,
  toCell: (px: number) => number,
): Touch {
  const first = new Int32Array(sizePx);
  const end = new Int32Array(sizePx);
  for (let px = 0; px < sizePx; px += 1) {
    const a = toCell(px);
    const b = toCell(px + 1);
    const low = Math.floor(Math.min(a, b) + 1e-9);
    const high = Math.max(Math.ceil(Math.max(a, b) - 1e-9), low + 1);
    // When cells are wider than pixels, the pixel belongs to the cell at its centre.
    const narrow = Math.abs(b - a) < 1;
    const centre = Math.floor((a + b) / 2);
    first[px] = Math.max(0, narrow ? centre : low);
    end[px] = Math.min(numCells, narrow ? centre + 1 : high);
  }
  return { first, end };
}

/** Over rows [first, end); the first of equal values wins. */
function poolRows(
  { values, columns }: Grid,
  [first, end]: readonly [number, number],
  [from, to]: readonly [number, number],
  highest: Uint16Array,
  rowOf: Int32Array,
): void {
  for (let row = first; row < end; row += 1) {
    const offset = row * columns;
    for (let c = from; c < to; c += 1) {
      const value = values[offset + c] ?? 0;
      if (row === first || value > (highest[c] ?? 0)) {
        highest[c] = value;
        rowOf[c] = row;
      }
    }
  }
}

/** [first, end) of the pixels that touch any cell. */
function covered({ first, end }: Touch): readonly [number, number] {
  const isOn = (px: number): boolean => (end[px] ?? 0) > (first[px] ?? 0);
  let low = 0;
  let high = first.length;
  while (low < high && !isOn(low)) low += 1;
  while (high > low && !isOn(high - 1)) high -= 1;
  return [low, high];
}

/** Axes may grow either way. */
export function gridFills(grid: Grid, view: Viewport): boolean {
  const within = (start: number, span: number, a: number, b: number): boolean =>
    Math.min(start, start + span) <= Math.min(a, b) &&
    Math.max(start, start + span) >= Math.max(a, b);
  return (
    within(grid.x0, grid.columns * grid.columnWidth, view.x0, view.x1) &&
    within(grid.y0, grid.rows * grid.rowHeight, view.y0, view.y1)
  );
}

/** Ids are `firstId` + row * columns + column. */
export function drawGrid(
  raster: Raster,
  view: Viewport,
  grid: Grid,
  colours: CellColours,
  firstId: number,
): void {
  const { widthPx, heightPx, pixels, ids } = raster;
  const { columns } = grid;
  const across = touches(
    widthPx,
    columns,
    (px) => (pxToX(view, widthPx, px) - grid.x0) / grid.columnWidth,
  );
  const down = touches(
    heightPx,
    grid.rows,
    (px) => (pxToY(view, heightPx, px) - grid.y0) / grid.rowHeight,
  );
  const [left, right] = covered(across);
  if (right <= left) return;
  const seen = [across.first[left] ?? 0, across.end[right - 1] ?? 0] as const;
  const highest = new Uint16Array(columns);
  const rowOf = new Int32Array(columns);
  let pooled = -1;
  let pooledEnd = -1;
  let hatched = false;

  for (let y = 0; y < heightPx; y += 1) {
    const first = down.first[y] ?? 0;
    const end = down.end[y] ?? 0;
    if (end <= first) continue;
    const start = y * widthPx;
    const same = first === pooled && end === pooledEnd;
    if (same && !hatched) {
      pixels.copyWithin(start + left, start - widthPx + left, start - widthPx + right);
      ids.copyWithin(start + left, start - widthPx + left, start - widthPx + right);
      continue;
    }
    if (!same) poolRows(grid, [first, end], seen, highest, rowOf);
    pooled = first;
    pooledEnd = end;
    hatched = false;
    for (let x = left; x < right; x += 1) {
      let column = across.first[x] ?? 0;
      const last = across.end[x] ?? 0;
      let value = highest[column] ?? 0;
      for (let c = column + 1; c < last; c += 1) {
        const other = highest[c] ?? 0;
        if (other > value) {
          value = other;
          column = c;
        }
      }
      const isAccent = value === 0 && ((x + y) & 7) === 0;
      hatched ||= value === 0;
      pixels[start + x] = isAccent ? colours.absentAccent : (colours.lut[value] ?? 0);
      ids[start + x] = firstId + (rowOf[column] ?? 0) * columns + column;
    }
  }
}
