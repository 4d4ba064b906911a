/** Words of the URL that pages of histories share, read and checked. Pure. */

import type { RangeWords } from "../../shared/range/params";

export type SetParams = (
  changes: Readonly<Record<string, string | null>>,
  how?: "replace" | "push",
) => void;

/** A whole number of at least `least`; null: there is none. */
export function whole(text: string | undefined, least = 0): number | null {
  if (text === undefined || !/^-?\d{1,10}$/.test(text)) return null;
  const value = Number(text);
  return value >= least ? value : null;
}

export function oneOf<T extends string>(words: readonly T[], text: string, or: T): T {
  return words.find((word) => word === text) ?? or;
}

/** The other side of a comparison (`a_run`) is of the run that was chosen. */
export const SAME_RUN = "this";

type Words = Readonly<Record<string, string | null>>;

/** The part of a picture in sight: events or time, and bytes. */
export const VIEW_X: RangeWords = { low: "h0", high: "h1" };
export const VIEW_Y: RangeWords = { low: "b0", high: "b1" };

/** What belongs to one device of one history, and to no other. */
const OF_HISTORY: Words = Object.fromEntries(
  [
    ...["moment", "life", "stack", "mark", "frame", "only", "stream", "pool"],
    ...["h0", "h1", "b0", "b1", "r0", "r1"],
  ].map((name) => [name, null]),
);

/** The words that choose another history. */
export function historyWords(history: string): Words {
  return { ...OF_HISTORY, history, history_device: null };
}

export function deviceWords(device: number): Words {
  return { ...OF_HISTORY, history_device: device.toString() };
}
