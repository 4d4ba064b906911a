/** Ranges of x. Pure. */

/** A closed range in units of x (steps, or milliseconds). */
export interface XRange {
  readonly low: number;
  readonly high: number;
}

/** What has no width is shown in the middle of some. */
export function widened({ low, high }: XRange): XRange {
  return high > low ? { low, high } : { low: low - 0.5, high: low + 0.5 };
}

/** The range moved, without zooming, so that `x` is in sight; null shows everything. */
export function rangeAround(
  range: XRange | null,
  x: number,
  all: XRange,
): XRange | null {
  if (range === null || (x >= range.low && x <= range.high)) return range;
  const half = (range.high - range.low) / 2;
  const centre = Math.min(Math.max(x, all.low + half), all.high - half);
  return { low: centre - half, high: centre + half };
}
