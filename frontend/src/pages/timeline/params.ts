/** The Timeline's words in the URL, read and checked. */

import { readX, type XParams } from "../shared/range/params";

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
