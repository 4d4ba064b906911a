import { zoomAt } from "../../render/viewport";
import type { XRange } from "../plot/range";

const LEAST_EVENTS = 8;
const PAGE_SHARE = 0.05;
const FAR = 10;

/** Events [low, high). */
export function wholeRange(numEvents: number): XRange {
  return { low: 0, high: Math.max(1, numEvents) };
}

/** Clamped to the whole; null: all. */
export function zoomedRange(
  range: XRange,
  moment: number,
  factor: number,
  numEvents: number,
): XRange | null {
  const all = wholeRange(numEvents);
  const world = { x0: all.low, x1: all.high, y0: 0, y1: 1 };
  const limits = { world, leastX: LEAST_EVENTS, leastY: 1 };
  const view = { ...world, x0: range.low, x1: range.high };
  const { x0, x1 } = zoomAt(view, limits, { x: moment, y: 0 }, factor, 1);
  return x0 <= all.low && x1 >= all.high ? null : { low: x0, high: x1 };
}

export function clampedMoment(moment: number, numEvents: number): number {
  return Math.min(Math.max(Math.round(moment), -1), numEvents - 1);
}

export function momentAt(x: number, numEvents: number): number {
  return clampedMoment(Math.floor(x), numEvents);
}

/** null: not a key of the scrubber. */
export function momentAfterKey(
  key: string,
  far: boolean,
  moment: number,
  range: XRange,
  numEvents: number,
): number | null {
  const page = Math.max(1, Math.round((range.high - range.low) * PAGE_SHARE));
  const steps: Readonly<Record<string, number>> = {
    ArrowRight: far ? FAR : 1,
    ArrowUp: far ? FAR : 1,
    ArrowLeft: far ? -FAR : -1,
    ArrowDown: far ? -FAR : -1,
    PageUp: page,
    PageDown: -page,
    Home: -numEvents - 1,
    End: numEvents + 1,
  };
  const by = steps[key];
  return by === undefined ? null : clampedMoment(moment + by, numEvents);
}

/** Whole events between two places; at least one. */
export function rangeBetween(a: number, b: number, numEvents: number): XRange {
  const low = Math.min(Math.max(Math.floor(Math.min(a, b)), 0), numEvents - 1);
  const high = Math.min(Math.ceil(Math.max(a, b)), numEvents);
  return { low, high: Math.max(high, low + 1) };
}

/** One end of a range after a key; null: not a key of the scrubber. */
export function rangeAfterKey(
  key: string,
  far: boolean,
  which: "low" | "high",
  range: XRange,
  numEvents: number,
): XRange | null {
  const { low, high } = range;
  const all = wholeRange(numEvents);
  const event = which === "low" ? low : high - 1;
  const next = momentAfterKey(key, far, event, all, numEvents);
  if (next === null) return null;
  return which === "low"
    ? { low: Math.min(Math.max(next, 0), high - 1), high }
    : { low, high: Math.max(next + 1, low + 1) };
}

/** Events per frame, so that a range takes about `seconds`. */
export function playStep(range: XRange, seconds: number, perSecond: number): number {
  return Math.max(1, Math.round((range.high - range.low) / (seconds * perSecond)));
}
