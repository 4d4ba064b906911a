/**
 * A max-pooling pyramid over a grid of u16 cells: each level halves both sides and
 * keeps the highest of four, so that a peak one cell wide still shows when a million
 * cells share a screen. 0 means "nothing recorded" and loses to every value.
 */

export interface GridLevel {
  /** A cell of this level covers 2^log2 x 2^log2 cells of the base. */
  readonly log2: number;
  readonly columns: number;
  readonly rows: number;
  /** Row by row. */
  readonly values: Uint16Array;
}

/** Levels from the base (first, never empty) to the coarsest. */
export interface Pyramid {
  readonly base: GridLevel;
  readonly levels: readonly GridLevel[];
}

/** Coarser than this is never needed: the smallest drawings are wider. */
const LEAST_CELLS = 64;

function halve(level: GridLevel): GridLevel {
  const columns = Math.ceil(level.columns / 2);
  const rows = Math.ceil(level.rows / 2);
  const values = new Uint16Array(columns * rows);
  const from = level.values;
  for (let row = 0; row < rows; row += 1) {
    const upper = row * 2 * level.columns;
    // The last row and column of odd grids stand for themselves.
    const lower = row * 2 + 1 < level.rows ? upper + level.columns : upper;
    const target = row * columns;
    for (let column = 0; column < columns; column += 1) {
      const left = column * 2;
      const right = left + 1 < level.columns ? left + 1 : left;
      const a = from[upper + left] ?? 0;
      const b = from[upper + right] ?? 0;
      const c = from[lower + left] ?? 0;
      const d = from[lower + right] ?? 0;
      const ab = a > b ? a : b;
      const cd = c > d ? c : d;
      values[target + column] = ab > cd ? ab : cd;
    }
  }
  return { log2: level.log2 + 1, columns, rows, values };
}

export function buildPyramid(
  values: Uint16Array,
  columns: number,
  rows: number,
): Pyramid {
  const base: GridLevel = { log2: 0, columns, rows, values };
  const levels = [base];
  let last = base;
  while (Math.min(last.columns, last.rows) > LEAST_CELLS) {
    last = halve(last);
    levels.push(last);
  }
  return { base, levels };
}

/** The coarsest level whose cells are no larger than a pixel on either side. */
export function levelFor(
  pyramid: Pyramid,
  cellsPerPxX: number,
  cellsPerPxY: number,
): GridLevel {
  const wanted = Math.floor(Math.log2(Math.max(1, Math.min(cellsPerPxX, cellsPerPxY))));
  const last = pyramid.levels.length - 1;
  return pyramid.levels[Math.min(wanted, last)] ?? pyramid.base;
}

/** The highest base cell under a level's cell: where the peak it shows really is. */
export function highestCell(
  base: {
    readonly columns: number;
    readonly rows: number;
    readonly values: Uint16Array;
  },
  log2: number,
  column: number,
  row: number,
): { readonly column: number; readonly row: number; readonly value: number } {
  const size = 2 ** log2;
  let best = { column: column * size, row: row * size, value: -1 };
  const lastRow = Math.min((row + 1) * size, base.rows);
  const lastColumn = Math.min((column + 1) * size, base.columns);
  for (let r = row * size; r < lastRow; r += 1) {
    for (let c = column * size; c < lastColumn; c += 1) {
      const value = base.values[r * base.columns + c] ?? 0;
      if (value > best.value) best = { column: c, row: r, value };
    }
  }
  return best;
}
