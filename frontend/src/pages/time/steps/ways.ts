import type { StepsResponse } from "../../../api/types.gen";
import type { ViewProps } from "../../shared/view_props";

export type Way = "operators" | "distributed" | "trace";

export const WAY_TITLES: Readonly<Record<Way, string>> = {
  operators: "Operators",
  distributed: "Distributed",
  trace: "Trace",
};

const OF_PARTS: Readonly<Record<string, Way>> = {
  forward: "operators",
  backward: "operators",
  optimizer: "operators",
  zero_grad: "operators",
  communication: "distributed",
};

/** Without profiler traces only spans exist, and those are in Trace. */
export function wayOf(part: string, hasTraces: boolean): Way {
  return hasTraces ? (OF_PARTS[part] ?? "trace") : "trace";
}

/**
 * A usual drawn step of a rank, else of any rank, without the profiler's own steps.
 * null: nothing is drawn.
 */
export function usualStep(answer: StepsResponse, rank: number | null): number | null {
  const { shownStep, columnRank, seconds, profilerSteps } = answer;
  const all = Array.from(shownStep, (step, column) => ({
    step,
    rank: columnRank[column] ?? -1,
    seconds: seconds[column] ?? NaN,
  })).filter(
    (one) =>
      one.seconds > 0 &&
      !profilerSteps.some(({ first, last }) => first <= one.step && one.step <= last),
  );
  const own = all.filter((one) => one.rank === rank);
  const of = (own.length > 0 ? own : all).sort((a, b) => a.seconds - b.seconds);
  return of[Math.floor(of.length / 2)]?.step ?? null;
}

/** Trace finds a step by its number, or says which one it shows instead. */
export function showStepInTrace(
  view: ViewProps,
  rank: number | null,
  step: number | null,
): void {
  if (rank !== null) view.chooseRank(rank);
  view.showPage("trace", { w0: null, w1: null, step: step?.toString() ?? null });
}
