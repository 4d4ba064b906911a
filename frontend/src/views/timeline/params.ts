/** The Timeline's words in the URL, read and checked. */

import type { XKind } from "../../api/types.gen";
import { isXKind } from "../../model/x_kind";
import type { XRange } from "../../widgets/line_chart/types";

export interface TimelineParams {
  /** "" leaves the choice to the server. */
  readonly series: string;
  readonly x: XKind;
  readonly range: XRange | null;
  /** "" is the training phase. */
  readonly phase: string;
  /** 0 (off) to 0.99. */
  readonly smoothing: number;
  readonly logScale: boolean;
}

export const MOST_SMOOTHING = 0.99;

export function readParams(params: ReadonlyMap<string, string>): TimelineParams {
  const x = params.get("x") ?? "";
  const low = Number.parseFloat(params.get("x0") ?? "");
  const high = Number.parseFloat(params.get("x1") ?? "");
  const smoothing = Number.parseFloat(params.get("smooth") ?? "");
  return {
    series: params.get("series") ?? "",
    x: isXKind(x) ? x : "step",
    range: low < high && Number.isFinite(high - low) ? { low, high } : null,
    phase: params.get("phase") ?? "",
    smoothing: smoothing > 0 ? Math.min(smoothing, MOST_SMOOTHING) : 0,
    logScale: params.get("log") === "1",
  };
}

/** As few digits as tell neighbouring px apart, so links stay short. */
export function rangeWords(range: XRange | null): {
  readonly x0: string | null;
  readonly x1: string | null;
} {
  if (range === null) return { x0: null, x1: null };
  const span = range.high - range.low;
  const decimals = Math.min(6, Math.max(0, Math.ceil(4 - Math.log10(span))));
  const text = (value: number): string => String(Number(value.toFixed(decimals)));
  return { x0: text(range.low), x1: text(range.high) };
}

/** What to ask for: half a screen more on either side, so that panning has slack. */
export function askedRange(range: XRange | null): XRange | null {
  if (range === null) return null;
  const slack = (range.high - range.low) / 2;
  return { low: range.low - slack, high: range.high + slack };
}

export function covers(have: XRange | null, wanted: XRange | null): boolean {
  if (have === null) return true;
  return wanted !== null && have.low <= wanted.low && have.high >= wanted.high;
}
