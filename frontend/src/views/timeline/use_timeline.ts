/**
 * Two answers of `/timeline`: the sharp one for the range in sight, and the one of the
 * whole run, which feeds the minimap and stands in while a sharp one is under way.
 */

import { useRef } from "preact/hooks";
import type { ApiError, Query } from "../../api/client";
import type { TimelineResponse } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { XRange } from "../../widgets/line_chart/types";
import type { ViewProps } from "../view_props";
import { askedRange } from "../x_params";
import { covers, type TimelineParams } from "./params";

export interface TimelineData {
  /** What the chart draws now; null until the first answer. */
  readonly drawn: TimelineResponse | null;
  readonly whole: TimelineResponse | null;
  readonly stale: boolean;
  readonly error: ApiError | null;
}

/** How much slower the whole run is asked for again while a part of it is shown. */
const WHOLE_POLL_FACTOR = 4;

/** Everything of a query but its range. */
function subjectOf(props: ViewProps, params: TimelineParams): Query {
  const { run, ranks } = props;
  return {
    run: run.id,
    rank: ranks.rank,
    ranks: ranks.filter,
    pinned: ranks.pinned.join(","),
    series: params.series,
    x: params.x,
    phase: params.phase,
  };
}

export function useTimeline(
  props: ViewProps,
  params: TimelineParams,
  shown: XRange | null,
  settled: XRange | null,
  px: number,
): TimelineData {
  const { client, pollMs } = props;
  const subject = subjectOf(props, params);
  const asked = askedRange(settled);
  // Twice the width, because twice the range is asked for.
  const sharpQuery: Query | null =
    px === 0
      ? null
      : asked === null
        ? { ...subject, px }
        : { ...subject, px: 2 * px, x0: asked.low, x1: asked.high };
  const wholeQuery = px === 0 || asked === null ? null : { ...subject, px };
  const sharp = useLive(client, "timeline", sharpQuery, pollMs);
  const whole = useLive(client, "timeline", wholeQuery, pollMs * WHOLE_POLL_FACTOR);

  const key = JSON.stringify(subject);
  const kept = useRef<{
    key: string;
    sharp: TimelineResponse | null;
    range: XRange | null;
    whole: TimelineResponse | null;
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
