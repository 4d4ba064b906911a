/** Words of the URL that pages of histories share, read and checked. Pure. */

export type SetParams = (
  changes: Readonly<Record<string, string | null>>,
  how?: "replace" | "push",
) => void;

export interface Span {
  readonly low: number;
  readonly high: number;
}

/** A whole number of at least `least`; null: there is none. */
export function whole(text: string | undefined, least = 0): number | null {
  if (text === undefined || !/^-?\d{1,10}$/.test(text)) return null;
  const value = Number(text);
  return value >= least ? value : null;
}

export function span(low: string | undefined, high: string | undefined): Span | null {
  const [from, to] = [Number.parseFloat(low ?? ""), Number.parseFloat(high ?? "")];
  return from < to && Number.isFinite(to - from) ? { low: from, high: to } : null;
}

export function oneOf<T extends string>(words: readonly T[], text: string, or: T): T {
  return words.find((word) => word === text) ?? or;
}

type Words = Readonly<Record<string, string | null>>;

/** As few digits as tell neighbouring px apart, so links stay short. */
function spanWords(part: Span | null, low: string, high: string): Words {
  if (part === null) return { [low]: null, [high]: null };
  const width = part.high - part.low;
  const decimals = Math.min(6, Math.max(0, Math.ceil(4 - Math.log10(width))));
  const text = (value: number): string => String(Number(value.toFixed(decimals)));
  return { [low]: text(part.low), [high]: text(part.high) };
}

export function viewWords(x: Span | null, y: Span | null): Words {
  return { ...spanWords(x, "h0", "h1"), ...spanWords(y, "b0", "b1") };
}

/** What belongs to one device of one history, and to no other. */
export const OF_HISTORY: Words = {
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

export function momentWords(moment: number | null): Words {
  return { moment: moment === null ? null : moment.toString() };
}
