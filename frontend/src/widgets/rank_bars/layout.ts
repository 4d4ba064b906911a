/**
 * Geometry of the rank strip; pure. One bar per rank while the ranks fit, otherwise one
 * bar per few neighbours, as high as the highest of them: a peak never vanishes.
 */

import type { RankStrip } from "../../api/types.gen";

export const STRIP_ORDERS = ["rank", "peak", "growth"] as const;
export type StripOrder = (typeof STRIP_ORDERS)[number];

export interface StripBar {
  /** Indices into the strip's columns of what this bar covers, in drawing order. */
  readonly members: readonly number[];
  /** The member with the highest peak; where all are absent, the first. */
  readonly top: number;
  readonly highBytes: number;
  readonly lowBytes: number;
}

export interface StripLayout {
  readonly bars: readonly StripBar[];
  /** From one bar's left edge to the next one's. */
  readonly pitchPx: number;
  readonly barPx: number;
  /** Value at the upper edge. */
  readonly topBytes: number;
  /** The capacity to draw; null where there is none or it is far above every bar. */
  readonly capacityBytes: number | null;
}

const WIDEST_PITCH_PX = 96;
/** Bars narrower than this cannot be told apart or hit. */
const NARROWEST_PITCH_PX = 3;
/** Below this share of the capacity the bars get the height to themselves. */
const LEAST_SHARE = 0.15;

/** Indices of the strip's columns in the order asked for; absent values go last. */
export function orderRanks(strip: RankStrip, order: StripOrder): readonly number[] {
  const indices = Array.from(strip.rank, (_, i) => i);
  if (order === "rank") return indices;
  const values = order === "peak" ? strip.peakBytes : strip.growthBytesPerStep;
  const key = (i: number): number => {
    const value = values[i];
    return value === undefined || Number.isNaN(value)
      ? Number.NEGATIVE_INFINITY
      : value;
  };
  return indices.sort((a, b) => {
    const [low, high] = [key(a), key(b)];
    return low === high ? a - b : high - low;
  });
}

export function layoutStrip(
  strip: RankStrip,
  order: StripOrder,
  widthPx: number,
): StripLayout {
  const indices = orderRanks(strip, order);
  const most = Math.max(1, Math.floor(widthPx / NARROWEST_PITCH_PX));
  const perBar = Math.max(1, Math.ceil(indices.length / most));
  const bars: StripBar[] = [];
  for (let from = 0; from < indices.length; from += perBar) {
    bars.push(barOf(strip, indices.slice(from, from + perBar)));
  }
  const pitchPx = Math.min(WIDEST_PITCH_PX, widthPx / Math.max(1, bars.length));
  return { bars, pitchPx, barPx: pitchPx - gapOf(pitchPx), ...heights(strip, bars) };
}

/** Narrow bars stand side by side: gaps of a fraction of a pixel would flicker. */
function gapOf(pitchPx: number): number {
  if (pitchPx >= 48) return 16;
  if (pitchPx >= 12) return 4;
  return pitchPx >= 6 ? 2 : 0;
}

function barOf(strip: RankStrip, members: readonly number[]): StripBar {
  let top = members[0] ?? 0;
  let high = Number.NEGATIVE_INFINITY;
  let low = Number.POSITIVE_INFINITY;
  for (const i of members) {
    const peak = strip.peakBytes[i] ?? Number.NaN;
    if (Number.isNaN(peak)) continue;
    if (peak > high) {
      high = peak;
      top = i;
    }
    low = Math.min(low, peak);
  }
  const absent = high === Number.NEGATIVE_INFINITY;
  return {
    members,
    top,
    highBytes: absent ? Number.NaN : high,
    lowBytes: absent ? Number.NaN : low,
  };
}

function heights(
  strip: RankStrip,
  bars: readonly StripBar[],
): Pick<StripLayout, "topBytes" | "capacityBytes"> {
  let highest = 0;
  for (const bar of bars) if (bar.highBytes > highest) highest = bar.highBytes;
  let capacity = 0;
  for (const bytes of strip.capacityBytes) if (bytes > capacity) capacity = bytes;
  const shown = capacity > 0 && highest >= capacity * LEAST_SHARE;
  const top = (shown ? Math.max(capacity, highest) : highest) * 1.06;
  return { topBytes: top > 0 ? top : 1, capacityBytes: shown ? capacity : null };
}

/** The bar under a point, or null beside them. */
export function barAt(layout: StripLayout, xPx: number): number | null {
  const at = Math.floor(xPx / layout.pitchPx);
  return at >= 0 && at < layout.bars.length ? at : null;
}
