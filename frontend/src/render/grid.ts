/**
 * Cells of a grid into pixels. A pixel shows the highest cell it touches, and its id
 * names that cell at the pyramid level drawn, so that what is seen is what is picked.
 */

import type { GridLevel, Pyramid } from "./pyramid";
import { levelFor } from "./pyramid";
import type { Raster } from "./raster";
import type { Viewport } from "./viewport";
import { pxToX, pxToY } from "./viewport";

/** Where a grid of cells lies in the world. Row 0 is at y0. */
export interface Grid {
  readonly pyramid: Pyramid;
  readonly x0: number;
  readonly columnWidth: number;
  readonly y0: number;
  readonly rowHeight: number;
}

export interface CellColours {
  /** Colour of each of the 65,536 values; entry 0 is the colour of absence. */
  readonly lut: Uint32Array;
  /** Second colour of absence: it is hatched, never plain. */
  readonly absentAccent: number;
}

/** The cells each pixel of one axis touches: [first, end) per pixel, empty outside. */
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

/** The highest value of each column over rows [first, end); ties keep the first. */
function poolRows(
  level: GridLevel,
  first: number,
  end: number,
  from: number,
  to: number,
  highest: Uint16Array,
  rowOf: Int32Array,
): void {
  const start = first * level.columns;
  for (let c = from; c < to; c += 1) {
    highest[c] = level.values[start + c] ?? 0;
    rowOf[c] = first;
  }
  for (let row = first + 1; row < end; row += 1) {
    const offset = row * level.columns;
    for (let c = from; c < to; c += 1) {
      const value = level.values[offset + c] ?? 0;
      if (value > (highest[c] ?? 0)) {
        highest[c] = value;
        rowOf[c] = row;
      }
    }
  }
}

/** First and last pixel of an axis that touch any cell. */
function covered(touch: Touch): readonly [number, number] {
  let low = 0;
  let high = touch.first.length;
  while (low < high && (touch.end[low] ?? 0) <= (touch.first[low] ?? 0)) low += 1;
  while (high > low && (touch.end[high - 1] ?? 0) <= (touch.first[high - 1] ?? 0)) {
    high -= 1;
  }
  return [low, high];
}

/** Draw the grid; ids are `firstId` + row * columns + column of the level returned. */
export function drawGrid(
  raster: Raster,
  view: Viewport,
  grid: Grid,
  colours: CellColours,
  firstId: number,
): GridLevel {
  const { widthPx, heightPx, pixels, ids } = raster;
  const level = levelFor(
    grid.pyramid,
    Math.abs((view.x1 - view.x0) / widthPx / grid.columnWidth),
    Math.abs((view.y1 - view.y0) / heightPx / grid.rowHeight),
  );
  const size = 2 ** level.log2;
  const across = touches(
    widthPx,
    level.columns,
    (px) => (pxToX(view, widthPx, px) - grid.x0) / grid.columnWidth / size,
  );
  const down = touches(
    heightPx,
    level.rows,
    (px) => (pxToY(view, heightPx, px) - grid.y0) / grid.rowHeight / size,
  );
  const [left, right] = covered(across);
  if (right <= left) return level;
  const from = across.first[left] ?? 0;
  const to = across.end[right - 1] ?? 0;
  const highest = new Uint16Array(level.columns);
  const rowOf = new Int32Array(level.columns);
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
    if (!same) poolRows(level, first, end, from, to, highest, rowOf);
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
      if (value === 0) {
        hatched = true;
        pixels[start + x] =
          ((x + y) & 7) === 0 ? colours.absentAccent : (colours.lut[0] ?? 0);
      } else {
        pixels[start + x] = colours.lut[value] ?? 0;
      }
      ids[start + x] = firstId + (rowOf[column] ?? 0) * level.columns + column;
    }
  }
  return level;
}
