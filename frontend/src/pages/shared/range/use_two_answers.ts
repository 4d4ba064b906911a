/**
 * A sharp answer for the visible range, and one of the whole run for the minimap and
 * until the sharp one arrives.
 */

import { useRef } from "preact/hooks";
import type { ApiError, Client, Query, Route } from "../../../api/client";
import type { Responses } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import type { XRange } from "../../../widgets/plot/range";
import { askedRange, rangeQuery } from "./params";
import type { RangeState } from "./use_range";

interface TwoAnswers<T> {
  /** null until the first answer. */
  readonly drawn: T | null;
  readonly whole: T | null;
  readonly stale: boolean;
  readonly error: ApiError | null;
}

/** Polls the whole run this much slower while a part of it is shown. */
const WHOLE_POLL_FACTOR = 4;

export function covers(have: XRange | null, wanted: XRange | null): boolean {
  if (have === null) return true;
  return wanted !== null && have.low <= wanted.low && have.high >= wanted.high;
}

/** `subject` is the query without its range. */
export function useTwoAnswers<R extends Route>(
  client: Client,
  route: R,
  subject: Query,
  { shown, settled }: Pick<RangeState, "shown" | "settled">,
  px: number,
  pollMs: number,
): TwoAnswers<Responses[R]> {
  const asked = askedRange(settled);
  const sharpQuery = px === 0 ? null : { ...subject, ...rangeQuery(settled, px) };
  const wholeQuery = px === 0 || asked === null ? null : { ...subject, px };
  const sharp = useLive(client, route, sharpQuery, pollMs);
  const whole = useLive(client, route, wholeQuery, pollMs * WHOLE_POLL_FACTOR);

  const key = JSON.stringify(subject);
  const kept = useRef<{
    key: string;
    sharp: Responses[R] | null;
    range: XRange | null;
    whole: Responses[R] | null;
  }>({ key: "", sharp: null, range: null, whole: null });
  const keep = kept.current;
  if (sharp.data !== null && !sharp.stale) {
    if (keep.key !== key) keep.whole = null;
    keep.key = key;
    keep.sharp = sharp.data;
    keep.range = asked;
    if (asked === null) keep.whole = sharp.data;
  }
  if (whole.data !== null && !whole.stale && keep.key === key) keep.whole = whole.data;
  const fits = covers(keep.range, shown) || keep.whole === null;
  return {
    drawn: fits ? keep.sharp : keep.whole,
    whole: keep.whole,
    stale: sharp.stale || keep.key !== key,
    error: sharp.error,
  };
}
