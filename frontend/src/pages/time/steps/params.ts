/** The Steps view's words in the URL, read and checked. */

import type { StepRate } from "../../../api/types.gen";
import { readX, type XParams } from "../../shared/range/params";

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

export interface StepsParams extends XParams {
  readonly phase: string;
  /** Whose steps are stacked where there are several ranks. */
  readonly of: "worst" | "median";
  /** null leaves the choice to what was recorded. */
  readonly rate: RateKey | null;
  /** Over all ranks rather than of one. */
  readonly summed: boolean;
  /** What the heatmap compares; null: what tells the ranks apart. */
  readonly heat: HeatPart | null;
  /** The step that was pinned. */
  readonly step: number | null;
}

export function readSteps(params: ReadonlyMap<string, string>): StepsParams {
  const rate = params.get("rate");
  const heat = params.get("heat");
  const step = params.get("step") ?? "";
  return {
    ...readX(params),
    phase: params.get("phase") ?? "",
    of: params.get("of") === "median" ? "median" : "worst",
    rate: RATE_KEYS.find((one) => one === rate) ?? null,
    summed: params.get("summed") === "1",
    heat: HEAT_PARTS.find((one) => one === heat) ?? null,
    step: /^\d{1,12}$/.test(step) ? Number(step) : null,
  };
}
