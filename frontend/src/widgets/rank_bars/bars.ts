import type { RankStrip } from "../../api/types.gen";
import type { XAxis } from "../../model/lines/axis";
import { xToPx } from "../../render/viewport";
import type { PlotSight } from "../plot/reader";

export const STRIP_ORDERS = ["rank", "peak", "growth"] as const;
export type StripOrder = (typeof STRIP_ORDERS)[number];

export type Bars = Partial<RankStrip> & Pick<RankStrip, "peakBytes" | "rank">;

/** Narrower bars cannot be distinguished or clicked. */
const NARROWEST_PX = 3;

/** Indices into `strip`; absent values last. */
export function orderRanks(strip: Bars, order: StripOrder): readonly number[] {
  const indices = Array.from(strip.rank, (_, i) => i);
  const { rank, peakBytes, growthBytesPerStep = rank } = strip;
  if (order === "rank") return indices;
  const values = order === "peak" ? peakBytes : growthBytesPerStep;
  const key = (i: number): number => {
    const value = values[i] ?? NaN;
    return Number.isNaN(value) ? Number.NEGATIVE_INFINITY : value;
  };
  return indices.sort((a, b) => {
    const [low, high] = [key(a), key(b)];
    return low === high ? a - b : high - low;
  });
}

/** Indices of the ranks at x, the highest first; several where bars are thin. */
export function membersAt(
  strip: Bars,
  places: readonly number[],
  x: number,
  { view, size }: PlotSight,
): readonly number[] {
  const reach = ((NARROWEST_PX / 2) * (view.x1 - view.x0)) / size.widthPx;
  const [low, high] = reach < 0.5 ? [x, x] : [x - reach, x + reach];
  const peak = (i: number): number => {
    const value = strip.peakBytes[i] ?? NaN;
    return Number.isNaN(value) ? -1 : value;
  };
  return places
    .slice(Math.max(0, Math.floor(low)), Math.floor(high) + 1)
    .sort((a, b) => peak(b) - peak(a) || a - b);
}

/** Narrow bars have no gaps: those would flicker. */
function gapOf(pitchPx: number): number {
  if (pitchPx >= 48) return 16;
  if (pitchPx >= 12) return 4;
  return pitchPx >= 6 ? 2 : 0;
}

const WIDEST_PX = 80;

/** Left edge and width, in whole px of the plot. */
export function barPx(
  place: number,
  { view, size }: PlotSight,
): readonly [number, number] {
  const from = xToPx(view, size.widthPx, place);
  const pitch = xToPx(view, size.widthPx, place + 1) - from;
  const width = Math.min(pitch - gapOf(pitch), WIDEST_PX);
  const left = Math.round(from + (pitch - width) / 2);
  return [left, Math.max(1, Math.round(from + (pitch + width) / 2) - left)];
}

/** Labels every 1, 2, 4, 8 ... places. */
export function rankAxis({ rank }: Bars, places: readonly number[]): XAxis {
  const rankAt = (x: number): number => rank[places[Math.floor(x)] ?? -1] ?? NaN;
  return {
    name: "rank",
    column: "rank",
    least: Math.min(4, places.length),
    ticks: (low, high, most) => {
      const every = 2 ** Math.max(0, Math.ceil(Math.log2((high - low) / (2 * most))));
      const first = Math.ceil(Math.max(0, low) / every) * every;
      const num = Math.max(
        0,
        Math.ceil((Math.min(high, places.length) - first) / every),
      );
      return Array.from({ length: num }, (_, i) => {
        const place = first + i * every;
        return { value: place + 0.5, text: rankAt(place).toString() };
      });
    },
    text: (x) => `Rank ${rankAt(x)}`,
  };
}
