import {
  between,
  flag,
  oneOf,
  readState,
  text,
  whole,
  type Params,
} from "../page_state";
import { readX } from "../range/params";

export const MOST_SMOOTHING = 0.99;

const WORDS = {
  /** "": the server chooses. */
  series: text("series"),
  /** "": the training phase. */
  phase: text("phase"),
  smoothing: between("smooth", 0, MOST_SMOOTHING),
  logScale: flag("log"),
  /** null: depends on the number of ranks. */
  map: oneOf("map", ["excess", "value"], null),
  /** The step chosen for all pages. */
  step: whole("step"),
};

export type TimelineParams = ReturnType<typeof readParams>;

export function readParams(params: Params) {
  return { ...readX(params), ...readState(WORDS, params) };
}
