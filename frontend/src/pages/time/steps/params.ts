import type { StepRate } from "../../../api/types.gen";
import { X_KINDS } from "../../../model/lines/axis";
import {
  flag,
  oneOf,
  optional,
  switched,
  text,
  whole,
  type PageState,
} from "../../shared/page_state";

/** Height of a chart below the stack, CSS px. */
export const CHART_PX = 132;

type RateKey = StepRate["key"];

const RATE_KEYS: readonly RateKey[] = ["steps", "samples", "tokens", "flops", "mfu"];

export const STEPS = {
  x: oneOf("x", X_KINDS, "step"),
  phase: text("phase"),
  /** Whose steps are stacked where there are several ranks. */
  of: switched(
    "of",
    {
      worst: ["Slowest rank", "Of each step, the rank that took longest"],
      median: ["Median rank", "Of each step, the median rank"],
    },
    "worst",
  ),
  /** null: depends on what was recorded. */
  rate: oneOf("rate", RATE_KEYS, null),
  /** Over all ranks instead of one. */
  summed: flag("summed"),
  /** The compared part; null: the one that distinguishes the ranks. */
  heat: optional("heat"),
  step: whole("step"),
};

export type StepsParams = PageState<typeof STEPS>;
