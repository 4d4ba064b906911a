/** Closed; steps or milliseconds. */
export interface XRange {
  readonly low: number;
  readonly high: number;
}

/** A range without width gets one. */
export function widened({ low, high }: XRange): XRange {
  return high > low ? { low, high } : { low: low - 0.5, high: low + 0.5 };
}

/** Pans so that `x` is in view; null: everything. */
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
