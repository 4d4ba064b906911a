/** The visible range in the URL, shared by all views. */

import type { XRange } from "../../../widgets/plot/range";
import type { Word } from "../page_state";

export interface RangeWords {
  readonly low: string;
  readonly high: string;
}

export const X_WORDS: RangeWords = { low: "x0", high: "x1" };

export function readRange(
  params: ReadonlyMap<string, string>,
  names: RangeWords = X_WORDS,
): XRange | null {
  const low = Number.parseFloat(params.get(names.low) ?? "");
  const high = Number.parseFloat(params.get(names.high) ?? "");
  return low < high && Number.isFinite(high - low) ? { low, high } : null;
}

/** As few digits as distinguish neighbouring px, so links stay short. */
export function rangeWords(
  range: XRange | null,
  names: RangeWords = X_WORDS,
): Readonly<Record<string, string | null>> {
  if (range === null) return { [names.low]: null, [names.high]: null };
  const span = range.high - range.low;
  const decimals = Math.min(6, Math.max(0, Math.ceil(4 - Math.log10(span))));
  const text = (value: number): string => String(Number(value.toFixed(decimals)));
  return { [names.low]: text(range.low), [names.high]: text(range.high) };
}

/** Half a screen more per side, for panning. */
export function askedRange(range: XRange | null): XRange | null {
  if (range === null) return null;
  const slack = (range.high - range.low) / 2;
  return { low: range.low - slack, high: range.high + slack };
}

/** Twice the range needs twice the width. */
export function rangeQuery(settled: XRange | null, px: number) {
  const asked = askedRange(settled);
  return asked === null ? { px } : { px: 2 * px, x0: asked.low, x1: asked.high };
}

export function xRange(names: RangeWords = X_WORDS): Word<XRange | null> {
  return {
    read: (params) => readRange(params, names),
    write: (range) => rangeWords(range, names),
  };
}
