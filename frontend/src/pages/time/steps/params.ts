import { X_WORD } from "../../shared/controls/x_switch";
import {
  flag,
  optional,
  switched,
  text,
  whole,
  type PageState,
} from "../../shared/page_state";

/** Height of a chart below the stack, CSS px. */
export const CHART_PX = 132;

export const STEPS = {
  x: X_WORD,
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
  rate: optional("rate"),
  /** Over all ranks instead of one. */
  summed: flag("summed"),
  /** The compared part; null: the one that distinguishes the ranks. */
  heat: optional("heat"),
  step: whole("step"),
};

export type StepsParams = PageState<typeof STEPS>;
