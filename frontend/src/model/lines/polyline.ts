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

/** Points in px, of which NaN in `ys` ends a run. */
function runsOf(xs: Float64Array, ys: Float64Array): Runs {
  const runs: Float64Array[] = [];
  // No point is an object: a chart of bands has thousands in each frame of a gesture.
  const points = new Float64Array(2 * xs.length);
  let runStart = 0;
  let end = 0;
  const push = (i: number): void => {
    points[end] = xs[i] ?? NaN;
    points[end + 1] = ys[i] ?? NaN;
    end += 2;
  };
  let column = NaN;
  let first = 0;
  let lowest = 0;
  let highest = 0;
  /** The pixel column's first, lowest, highest and last point, each once. */
  const endColumn = (last: number): void => {
    if (Number.isNaN(column)) return;
    const near = Math.min(lowest, highest);
    const far = Math.max(lowest, highest);
    push(first);
    if (near !== first) push(near);
    if (far !== near) push(far);
    if (last !== far) push(last);
    column = NaN;
  };
  const endRun = (last: number): void => {
    endColumn(last);
    if (end > runStart) runs.push(points.slice(runStart, end));
    runStart = end;
  };
  for (let i = 0; i < xs.length; i += 1) {
    const y = ys[i] ?? NaN;
    if (!Number.isFinite(y)) {
      endRun(i - 1);
      continue;
    }
    const own = Math.floor(xs[i] ?? NaN);
    if (own !== column) {
      endColumn(i - 1);
      column = own;
      first = lowest = highest = i;
    } else if (y < (ys[lowest] ?? NaN)) lowest = i;
    else if (y > (ys[highest] ?? NaN)) highest = i;
  }
  endRun(xs.length - 1);
  return runs;
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
  return runsOf(x.subarray(first, end).map(toX), y.subarray(first, end).map(toY));
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
  const [first, end] = visibleRange(x, low, high);
  const xs = x.subarray(first, end).map(toX);
  const above = upper.subarray(first, end).map(toY);
  const below = lower.subarray(first, end).map(toY);
  // Both break at the same places.
  for (let i = 0; i < xs.length; i += 1) {
    if (!Number.isFinite(above[i])) below[i] = NaN;
    else if (!Number.isFinite(below[i])) above[i] = NaN;
  }
  const back = runsOf(xs, below);
  return runsOf(xs, above).map((run, i) => outline(run, back[i] ?? run));
}

/** Along one edge, and back along the other. */
function outline(edge: Float64Array, other: Float64Array): Float64Array {
  const points = new Float64Array(edge.length + other.length);
  points.set(edge);
  for (let i = 0; i < other.length; i += 2) {
    const from = other.length - i - 2;
    points[edge.length + i] = other[from] ?? NaN;
    points[edge.length + i + 1] = other[from + 1] ?? NaN;
  }
  return points;
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
