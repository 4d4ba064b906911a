/** Events [low, high). */
export interface EventRange {
  readonly low: number;
  readonly high: number;
}

const LEAST_EVENTS = 8;
const PAGE_SHARE = 0.05;
const FAR = 10;

export function wholeRange(numEvents: number): EventRange {
  return { low: 0, high: Math.max(1, numEvents) };
}

/** Clamped to the whole; null: all. */
export function zoomedRange(
  range: EventRange,
  at: number,
  factor: number,
  numEvents: number,
): EventRange | null {
  const all = wholeRange(numEvents);
  const most = all.high - all.low;
  const wide = Math.min(
    Math.max((range.high - range.low) * factor, LEAST_EVENTS),
    most,
  );
  if (wide >= most) return null;
  const share = (at - range.low) / (range.high - range.low);
  const low = Math.min(Math.max(at - share * wide, all.low), all.high - wide);
  return { low, high: low + wide };
}

export function rangeHolding(
  range: EventRange,
  moment: number,
  numEvents: number,
): EventRange {
  if (moment >= range.low && moment < range.high) return range;
  const wide = range.high - range.low;
  const low = Math.min(Math.max(moment - wide / 2, 0), Math.max(0, numEvents - wide));
  return { low, high: low + wide };
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
  range: EventRange,
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

/** Events per frame, so that a range takes about `seconds`. */
export function playStep(
  range: EventRange,
  seconds: number,
  perSecond: number,
): number {
  return Math.max(1, Math.round((range.high - range.low) / (seconds * perSecond)));
}
