import { X_WORD } from "../controls/x_switch";
import { between, flag, oneOf, text, whole, type PageState } from "../page_state";

export const MOST_SMOOTHING = 0.99;

export const TIMELINE = {
  x: X_WORD,
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
