import { valueRange, type Project } from "../../model/lines/polyline";
import { yToPx } from "../../render/viewport";
import type { XRange } from "../plot/range";
import type { PlotSight } from "../plot/reader";
import type { ChartBand, ChartFill, ChartLimit, ChartLine } from "./types";

export interface Frame extends Pick<PlotSight, "size" | "view"> {
  readonly logScale: boolean;
}

export interface ChartData {
  readonly lines: readonly ChartLine[];
  readonly band: ChartBand | null;
  readonly limit: ChartLimit | null;
  /** Ids that are not drawn; BAND_ID hides the band. */
  readonly hidden: ReadonlySet<string>;
  readonly smoothing: number;
  readonly fills?: readonly ChartFill[];
}

export const BAND_ID = "band";

export function projectX({ view, size }: Frame): Project {
  const scale = size.widthPx / (view.x1 - view.x0 || 1);
  return (value) => (value - view.x0) * scale;
}

export function projectY({ view, size, logScale }: Frame): Project {
  const { heightPx } = size;
  if (!logScale) return (value) => yToPx(view, heightPx, value);
  const bottom = Math.log(view.y1);
  const scale = heightPx / (Math.log(view.y0) - bottom || 1);
  // A logarithm needs values above zero: NaN breaks the line.
  return (value) => (value > 0 ? heightPx - (Math.log(value) - bottom) * scale : NaN);
}

/** The y range includes the limit once data reach this share of it. */
const NEAR_LIMIT = 0.4;

/** Above the data where the name of a limit stands that is higher than they are. */
const ROOM_OF_NAME = 0.16;

/** Everything visible in `x`, with a margin of 6 %. */
export function fitY(
  data: ChartData,
  x: XRange,
  options: { readonly logScale: boolean; readonly fromZero: boolean },
): XRange {
  let low = Infinity;
  let high = -Infinity;
  const take = (range: readonly [number, number] | null): void => {
    if (range === null) return;
    low = Math.min(low, range[0]);
    high = Math.max(high, range[1]);
  };
  for (const line of data.lines) {
    if (data.hidden.has(line.id)) continue;
    take(valueRange(line.x, [line.y, line.yLow], x.low, x.high));
  }
  const { band } = data;
  if (band !== null && !data.hidden.has(BAND_ID)) {
    take(valueRange(band.x, [band.low, band.high], x.low, x.high));
  }
  if (!(high >= low)) [low, high] = [0, data.limit?.value ?? 1];
  const limit = data.limit?.value ?? NaN;
  if (limit > 0 && high >= limit * NEAR_LIMIT && options.fromZero) {
    high = Math.max(high, limit);
  }
  if (options.logScale) {
    const bottom = low > 0 ? low : Math.max(high / 1e6, Number.MIN_VALUE);
    return { low: bottom / 1.2, high: Math.max(high, bottom) * 1.2 };
  }
  if (options.fromZero && low > 0) low = 0;
  const span = high - low || Math.abs(high) || 1;
  const above = limit > high ? ROOM_OF_NAME : 0.06;
  return { low: low === 0 ? 0 : low - span * 0.06, high: high + span * above };
}

export function visibleLines(data: ChartData): readonly ChartLine[] {
  return data.lines.filter((line) => !data.hidden.has(line.id));
}

/**
 * Exponential moving average without start-up bias, as in TensorBoard; gaps stay gaps.
 */
export function smooth(y: Float64Array, weight: number): Float64Array {
  if (weight <= 0) return y;
  const out = new Float64Array(y.length).fill(NaN);
  let sum = 0;
  let total = 0;
  for (let i = 0; i < y.length; i += 1) {
    const value = y[i] ?? NaN;
    if (!Number.isFinite(value)) continue;
    sum = sum * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    out[i] = sum / total;
  }
  return out;
}
