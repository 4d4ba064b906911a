/** The Steps view's words in the URL. */

import type { StepRate } from "../../../api/types.gen";
import {
  flag,
  oneOf,
  readState,
  text,
  whole,
  type Params,
} from "../../shared/page_state";
import { readX } from "../../shared/range/params";

/** The height of a chart below the stack, in CSS px. */
export const CHART_PX = 132;

export type RateKey = StepRate["key"];

export const HEAT_PARTS = [
  "step",
  "dataloader",
  "forward",
  "backward",
  "optimizer",
  "zero_grad",
  "checkpoint",
  "eval",
  "communication",
  "other",
] as const;
export type HeatPart = (typeof HEAT_PARTS)[number];

const RATE_KEYS: readonly RateKey[] = ["steps", "samples", "tokens", "flops", "mfu"];

const WORDS = {
  phase: text("phase"),
  /** Whose steps are stacked where there are several ranks. */
  of: oneOf("of", ["worst", "median"], "worst"),
  /** null leaves the choice to what was recorded. */
  rate: oneOf("rate", RATE_KEYS, null),
  /** Over all ranks rather than of one. */
  summed: flag("summed"),
  /** What the heatmap compares; null: what tells the ranks apart. */
  heat: oneOf("heat", HEAT_PARTS, null),
  /** The step that was pinned. */
  step: whole("step"),
};

export type StepsParams = ReturnType<typeof readSteps>;

export function readSteps(params: Params) {
  return { ...readX(params), ...readState(WORDS, params) };
}
