/** The Timeline's words in the URL, read and checked. */

import type { XRange } from "../../widgets/line_chart/types";
import { readX, type XParams } from "../x_params";

export interface TimelineParams extends XParams {
  /** "" leaves the choice to the server. */
  readonly series: string;
  /** "" is the training phase. */
  readonly phase: string;
  /** 0 (off) to 0.99. */
  readonly smoothing: number;
  readonly logScale: boolean;
}

export const MOST_SMOOTHING = 0.99;

export function readParams(params: ReadonlyMap<string, string>): TimelineParams {
  const smoothing = Number.parseFloat(params.get("smooth") ?? "");
  return {
    ...readX(params),
    series: params.get("series") ?? "",
    phase: params.get("phase") ?? "",
    smoothing: smoothing > 0 ? Math.min(smoothing, MOST_SMOOTHING) : 0,
    logScale: params.get("log") === "1",
  };
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
