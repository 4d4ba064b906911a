/** The Timeline's words in the URL. */

import { between, flag, readState, text, type Params } from "../shared/page_state";
import { readX } from "../shared/range/params";

export const MOST_SMOOTHING = 0.99;

const WORDS = {
  /** "" leaves the choice to the server. */
  series: text("series"),
  /** "" is the training phase. */
  phase: text("phase"),
  smoothing: between("smooth", 0, MOST_SMOOTHING),
  logScale: flag("log"),
};

export type TimelineParams = ReturnType<typeof readParams>;

export function readParams(params: Params) {
  return { ...readX(params), ...readState(WORDS, params) };
}
