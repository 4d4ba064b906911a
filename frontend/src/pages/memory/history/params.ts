/** Words of the URL that pages of histories share, read and checked. Pure. */

import type { XRange } from "../../../widgets/line_chart/types";
import { rangeWords, type RangeWords } from "../../shared/range/params";

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

export function viewWords(x: XRange | null, y: XRange | null): Words {
  return { ...rangeWords(x, VIEW_X), ...rangeWords(y, VIEW_Y) };
}

/** What belongs to one device of one history, and to no other. */
const OF_HISTORY: Words = {
  ...viewWords(null, null),
  moment: null,
  life: null,
  stack: null,
  mark: null,
  frame: null,
  only: null,
  r0: null,
  r1: null,
  stream: null,
  pool: null,
};

/** The words that choose another history. */
export function historyWords(history: string): Words {
  return { ...OF_HISTORY, history, history_device: null };
}

export function deviceWords(device: number): Words {
  return { ...OF_HISTORY, history_device: device.toString() };
}
