import { X_KINDS } from "../../../model/lines/axis";
import { between, flag, oneOf, text, whole, type PageState } from "../page_state";

export const MOST_SMOOTHING = 0.99;

export const TIMELINE = {
  x: oneOf("x", X_KINDS, "step"),
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

export type TimelineParams = PageState<typeof TIMELINE>;
