/** Words of the URL that pages of histories share, read and checked. Pure. */

import type { RangeWords } from "../../shared/range/params";

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
