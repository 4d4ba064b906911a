/**
 * The horizontal axis in the URL: the same words, and so the same place, on every view.
 * Without a word each view takes the axis that suits it; a range without one is of steps.
 */

import type { XKind } from "../api/types.gen";
import { isXKind } from "../model/x_kind";
import type { XRange } from "../widgets/line_chart/types";

export interface XParams {
  readonly x: XKind;
  /** The part shown; null shows everything. */
  readonly range: XRange | null;
}

export function readX(
  params: ReadonlyMap<string, string>,
  fallback: XKind = "step",
): XParams {
  const x = params.get("x") ?? "";
  const low = Number.parseFloat(params.get("x0") ?? "");
  const high = Number.parseFloat(params.get("x1") ?? "");
  const range = low < high && Number.isFinite(high - low) ? { low, high } : null;
  const unsaid = range === null ? fallback : "step";
  return { x: isXKind(x) ? x : unsaid, range };
}

/** As few digits as tell neighbouring px apart, so links stay short. */
export function rangeWords(range: XRange | null): {
  readonly x0: string | null;
  readonly x1: string | null;
} {
  if (range === null) return { x0: null, x1: null };
  const span = range.high - range.low;
  const decimals = Math.min(6, Math.max(0, Math.ceil(4 - Math.log10(span))));
  const text = (value: number): string => String(Number(value.toFixed(decimals)));
  return { x0: text(range.low), x1: text(range.high) };
}
