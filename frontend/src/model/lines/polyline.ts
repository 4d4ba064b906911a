/**
 * At most four points per pixel column (first, lowest, highest, last): a million points
 * cost no more than the screen is wide, and no peak is lost. NaN breaks the line; it
 * never becomes zero.
 */

export type Project = (value: number) => number;

/** Unbroken: x, y, x, y ... in px. */
export type Runs = readonly Float64Array[];

/** First index whose x is at least `value`. */
export function lowerBound(x: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((x[middle] ?? Infinity) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** First index above `value`, between two indices. */
export function upperBound(
  x: ArrayLike<number>,
  value: number,
  from = 0,
  end = x.length,
): number {
  let low = from;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((x[middle] ?? Infinity) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** [first, end) of the points in [low, high] and one more on each side, for the joins. */
export function visibleRange(
  x: Float64Array,
  low: number,
  high: number,
): readonly [number, number] {
  const first = Math.max(0, lowerBound(x, low) - 1);
  let end = lowerBound(x, high);
  while (end < x.length && (x[end] ?? Infinity) <= high) end += 1;
  return [first, Math.min(x.length, end + 1)];
}

const ORIGIN: readonly [number, number] = [0, 0];

class RunBuilder {
  readonly runs: Float64Array[] = [];
  #points: number[] = [];
  #column = NaN;
  /** x, y of the pixel column's first, lowest, highest and last point. */
  #first = ORIGIN;
  #low = ORIGIN;
  #high = ORIGIN;
  #last = ORIGIN;

  add(x: number, y: number): void {
    const column = Math.floor(x);
    if (column === this.#column) {
      if (y < this.#low[1]) this.#low = [x, y];
      if (y > this.#high[1]) this.#high = [x, y];
      this.#last = [x, y];
      return;
    }
    this.#flush();
    this.#column = column;
    this.#first = this.#low = this.#high = this.#last = [x, y];
  }

  end(): void {
    this.#flush();
    this.#column = NaN;
    if (this.#points.length > 0) this.runs.push(Float64Array.from(this.#points));
    this.#points = [];
  }

  #flush(): void {
    if (Number.isNaN(this.#column)) return;
    const inner =
      this.#low[0] <= this.#high[0] ? [this.#low, this.#high] : [this.#high, this.#low];
    const unique = new Set([this.#first, ...inner, this.#last]);
    for (const point of unique) this.#points.push(...point);
  }
}

/** Over [low, high], in px. */
export function polyline(
  x: Float64Array,
  y: Float64Array,
  low: number,
  high: number,
  toX: Project,
  toY: Project,
): Runs {
  const [first, end] = visibleRange(x, low, high);
  const builder = new RunBuilder();
  for (let i = first; i < end; i += 1) {
    const py = toY(y[i] ?? NaN);
    if (Number.isFinite(py)) builder.add(toX(x[i] ?? NaN), py);
    else builder.end();
  }
  builder.end();
  return builder.runs;
}

/** Closed outlines over [low, high]: upper edge forwards, lower edge backwards. */
export function area(
  x: Float64Array,
  lower: Float64Array,
  upper: Float64Array,
  low: number,
  high: number,
  toX: Project,
  toY: Project,
): Runs {
  const [above, below] = [upper.map(toY), lower.map(toY)];
  // Both break at the same places.
  const runs = (y: Float64Array, other: Float64Array): Runs => {
    const masked = y.map((py, i) => (Number.isFinite(other[i]) ? py : NaN));
    return polyline(x, masked, low, high, toX, Number);
  };
  const back = runs(below, above);
  return runs(above, below).map((run, i) =>
    Float64Array.from([...run, ...backwards(back[i] ?? run)]),
  );
}

function backwards(run: Float64Array): Float64Array {
  return run.map((_, i) => run[run.length - (i % 2 === 0 ? i + 2 : i)] ?? NaN);
}

export function nearestIndex(x: Float64Array, target: number): number {
  if (x.length === 0) return -1;
  const right = lowerBound(x, target);
  if (right === 0) return 0;
  if (right === x.length) return right - 1;
  const left = right - 1;
  return target - (x[left] ?? -Infinity) <= (x[right] ?? Infinity) - target
    ? left
    : right;
}

/** Of finite values over [low, high]; null: none. */
export function valueRange(
  x: Float64Array,
  columns: readonly Float64Array[],
  low: number,
  high: number,
): readonly [number, number] | null {
  const [first, end] = visibleRange(x, low, high);
  let least = Infinity;
  let most = -Infinity;
  for (const column of columns) {
    for (let i = first; i < end; i += 1) {
      const value = column[i] ?? NaN;
      if (value < least) least = value;
      if (value > most && value < Infinity) most = value;
    }
  }
  return most >= least ? [least, most] : null;
}
