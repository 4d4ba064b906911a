import type { RangeWords } from "../../shared/range/params";

/** Value of `a_run`: A is of the chosen run. */
export const SAME_RUN = "this";

type Words = Readonly<Record<string, string | null>>;

export const VIEW_X: RangeWords = { low: "h0", high: "h1" };
export const VIEW_Y: RangeWords = { low: "b0", high: "b1" };

const OF_HISTORY: Words = Object.fromEntries(
  [
    ...["moment", "life", "stack", "mark", "frame", "only", "stream", "pool"],
    ...["h0", "h1", "b0", "b1", "r0", "r1"],
  ].map((name) => [name, null]),
);

export function historyWords(history: string): Words {
  return { ...OF_HISTORY, history, history_device: null };
}

export function deviceWords(device: number): Words {
  return { ...OF_HISTORY, history_device: device.toString() };
}
