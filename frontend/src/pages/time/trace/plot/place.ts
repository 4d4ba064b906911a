/** Stretches of time, and what in them is outlined, linked or jumped to. Pure. */

import type { TraceSteps } from "../../../../api/types.gen";

/** Ten nanoseconds over the whole width: no clock is finer. */
export const LEAST_NS = 10;

/** Nanoseconds since the timeline's base. */
export interface NsRange {
  readonly low: number;
  readonly high: number;
}

/** A slice's place: where it is outlined, and arrows begin and end. */
export interface Place {
  readonly trackKey: string;
  readonly level: number;
  readonly startNs: number;
  readonly endNs: number;
}

export interface Arrow {
  readonly from: Place;
  readonly to: Place;
}

/** A window around a stretch; `share` of it on either side. */
export function around(low: number, high: number, share: number): NsRange {
  const slack = Math.max(LEAST_NS, (high - low) * share);
  return { low: low - slack, high: high + slack };
}

/** As wide a window as was asked for, moved to lie within what there is. */
export function within(next: NsRange, extent: NsRange): NsRange {
  const whole = extent.high - extent.low;
  const span = Math.max(LEAST_NS, Math.min(next.high - next.low, whole));
  const middle = (next.low + next.high) / 2;
  const low = Math.min(Math.max(middle - span / 2, extent.low), extent.high - span);
  return { low, high: low + span };
}

/** The window in which a place can be seen and read; null where it can already. */
export function windowOn(place: Place, now: NsRange): NsRange | null {
  const span = now.high - now.low;
  const length = place.endNs - place.startNs;
  // An instant is as easy to see at any zoom.
  const tiny = length > 0 && length < span / 2000;
  if (place.startNs >= now.low && place.endNs <= now.high && !tiny) return null;
  const middle = (place.startNs + place.endNs) / 2;
  const wide = tiny ? Math.max(length * 40, LEAST_NS) : Math.max(span, length * 1.5);
  return { low: middle - wide / 2, high: middle + wide / 2 };
}

/** The step after (or before) a time, with a little around it. */
export function stepBeside(
  { startNs, endNs }: TraceSteps,
  ns: number,
  sign: 1 | -1,
): NsRange | null {
  const at =
    sign > 0
      ? startNs.findIndex((start) => start > ns)
      : endNs.findLastIndex((end) => end < ns);
  if (at < 0) return null;
  const [low, high] = [startNs[at] ?? 0, endNs[at] ?? 0];
  const slack = (high - low) * 0.08;
  return { low: low - slack, high: high + slack };
}

/** How many tracks a text of the routes (`id:0-4,7;id:1`) names. */
export function countTracks(tracks: string): number {
  return tracks
    .split(";")
    .flatMap((part) => part.slice(part.indexOf(":") + 1).split(","))
    .reduce((sum, span) => {
      const [low, high] = span.split("-").map(Number);
      return sum + 1 + ((high ?? low ?? 0) - (low ?? 0));
    }, 0);
}
