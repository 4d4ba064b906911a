/** A peak rises by this share of the range of all values on both sides. */
const LEAST_SHARE = 0.05;

export interface Envelope {
  readonly x: Float64Array;
  readonly y: Float64Array;
}

/** Ascending x; a plateau's peak is its first point. */
export function localPeaks({ x, y }: Envelope): readonly number[] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of y) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const least = (high - low) * LEAST_SHARE;
  if (!(least > 0)) return [];
  const peaks: number[] = [];
  let best = { x: NaN, value: -Infinity };
  let lowest = Infinity;
  let climbing = true;
  for (const [i, value] of y.entries()) {
    if (!Number.isFinite(value)) continue;
    if (climbing) {
      if (value > best.value) best = { x: x[i] ?? NaN, value };
      else if (value < best.value - least) {
        peaks.push(best.x);
        climbing = false;
        lowest = value;
      }
    } else if (value < lowest) lowest = value;
    else if (value > lowest + least) {
      climbing = true;
      best = { x: x[i] ?? NaN, value };
    }
  }
  if (climbing && best.value >= lowest + least) peaks.push(best.x);
  // Rising from the very start to the very end is one peak: the end.
  return peaks.length === 0 ? [best.x] : peaks;
}

export function nextPeak(
  peaks: readonly number[],
  from: number,
  side: -1 | 1,
): number | null {
  const peak = side > 0 ? peaks.find((x) => x > from) : peaks.findLast((x) => x < from);
  return peak ?? null;
}

export function highestColumn(values: ArrayLike<number>): number {
  let best = -1;
  for (let c = 0; c < values.length; c += 1) {
    if ((values[c] ?? NaN) > (values[best] ?? -Infinity)) best = c;
  }
  return best;
}
