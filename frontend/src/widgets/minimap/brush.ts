/** What dragging on the minimap does to the range. Pure. */

import type { XRange } from "../line_chart/types";

export type BrushPart = "low" | "high" | "middle" | "new";

/** What a pointer at x takes hold of; `reach` is an edge's width in units of x. */
export function partAt(x: number, range: XRange | null, reach: number): BrushPart {
  if (range === null) return "new";
  // On a narrow brush the nearer edge wins, and its middle third stays for moving.
  const edge = Math.min(reach, (range.high - range.low) / 3 + reach / 3);
  const [toLow, toHigh] = [Math.abs(x - range.low), Math.abs(x - range.high)];
  if (toLow <= edge && toLow <= toHigh) return "low";
  if (toHigh <= edge) return "high";
  return x > range.low && x < range.high ? "middle" : "new";
}

/** The range after a drag by `by`; null where it is everything. */
export function brushAfter(
  part: BrushPart,
  range: XRange,
  by: number,
  extent: XRange,
): XRange | null {
  const least = (extent.high - extent.low) / 2000;
  let { low, high } = range;
  if (part === "middle") {
    const move = Math.min(Math.max(by, extent.low - low), extent.high - high);
    return { low: low + move, high: high + move };
  }
  if (part === "low") low += by;
  else if (part === "high" || by >= 0) high += by;
  else low += by;
  if (low > high) [low, high] = [high, low];
  low = Math.max(low, extent.low);
  high = Math.min(Math.max(high, low + least), extent.high);
  low = Math.min(low, high - least);
  const whole = low <= extent.low && high >= extent.high;
  return whole ? null : { low, high };
}
