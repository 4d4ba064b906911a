/** The slice and the range that are chosen, and what was found by name. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client } from "../../../../api/client";
import type {
  TracePartner,
  TraceRangeResponse,
  TraceSearchResponse,
  TraceSliceResponse,
} from "../../../../api/types.gen";
import { useLive } from "../../../../api/live/use_live";
import type { ViewProps } from "../../../shared/view_props";
import { sourceOf } from "../plot/layout";
import { absolute, since, type SliceRef, type TraceState } from "./params";

export function useSlice(
  { client, run }: ViewProps,
  chosen: SliceRef | null,
  base: bigint,
) {
  const { data, error } = useLive(
    client,
    "trace_slice",
    chosen && { run: run.id, ...chosen },
  );
  // Until another slice loads the last answer is still here.
  const isOther = data?.source !== chosen?.source || data?.row !== chosen?.row;
  const slice = isOther ? null : data;
  const linked = useMemo(() => linkedOf(slice, base), [slice, base]);
  return { slice, ...linked, error: data === null ? error : null };
}

/** `tracks`: those in sight, for a range that names none. */
export function useSums(
  { client, run }: ViewProps,
  {
    range,
    rangeTracks,
    rangeBy,
  }: Pick<TraceState, "range" | "rangeTracks" | "rangeBy">,
  tracks: string,
  base: bigint,
): TraceRangeResponse | null {
  const query = range && {
    run: run.id,
    tracks: rangeTracks === "" ? tracks : rangeTracks,
    t0: absolute(base, range.low),
    t1: absolute(base, range.high),
    by: rangeBy,
  };
  return useLive(client, "trace_range", query).data;
}

function linkedOf(slice: TraceSliceResponse | null, base: bigint) {
  if (slice === null) return { selected: null, related: [] };
  const placed = (
    { track, level, durationNs }: TraceSliceResponse | TracePartner,
    startNs: number,
  ) => ({ trackKey: track, level, startNs, endNs: startNs + durationNs });
  const startNs = since(base, slice.startNs);
  const related = slice.partners.map((partner) => ({
    ...placed(partner, startNs + partner.startNs),
    outgoing: partner.outgoing,
  }));
  return { selected: placed(slice, startNs), related };
}

export function hitsOf(answer: TraceSearchResponse, base: bigint) {
  const shift = since(base, answer.t0);
  return Array.from(answer.row, (row, i) => {
    const startNs = (answer.startNs[i] ?? 0) + shift;
    const endNs = startNs + (answer.durationNs[i] ?? 0);
    const trackKey = answer.tracks[answer.track[i] ?? 0] ?? "";
    return {
      place: { trackKey, level: answer.level[i] ?? 0, startNs, endNs },
      ref: { source: sourceOf(trackKey), row },
    };
  });
}

type Hits = ReturnType<typeof hitsOf>;

/** Below 0: none. */
export function hitOf(hits: Hits, slice: SliceRef | null): number {
  return hits.findIndex(
    ({ ref }) => ref.row === slice?.row && ref.source === slice.source,
  );
}

/** The hit after (or before) the chosen one, or a time; wraps around. */
export function hitBeside(
  hits: Hits,
  chosen: SliceRef | null,
  fromNs: number,
  sign: number,
): Hits[number] | undefined {
  const chosenHit = hitOf(hits, chosen);
  const after = hits.findIndex(({ place }) => place.startNs >= fromNs);
  const next = after < 0 ? hits.length : after;
  const to = chosenHit >= 0 ? chosenHit + sign : sign > 0 ? next : next - 1;
  return hits[(to + hits.length) % hits.length];
}

const PAUSE_MS = 250;

export function useSearch(client: Client, run: string, tracks: string, find: string) {
  const [settled, setSettled] = useState(find);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(find), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [find]);
  const nothing = settled === "" || tracks === "";
  const query = nothing ? null : { run, tracks, text: settled };
  const { data } = useLive(client, "trace_search", query);
  return find === "" || nothing ? null : data;
}
