/** The chosen slice: asked for by its row, with the places of what it is linked with. */

import { useMemo } from "preact/hooks";
import type { ApiError, Client } from "../../../../api/client";
import type {
  TraceSliceResponse,
  TraceInstantResponse,
  TraceSearchResponse,
} from "../../../../api/types.gen";
import { useOnce } from "../../../../api/use_once";
import { since, type SliceRef } from "./params";
import type { Arrow, Place } from "../plot/layout";
import { MARK_LEVEL } from "../tiles/tile";

export interface Linked {
  readonly selected: Place | null;
  readonly related: readonly Place[];
  readonly arrows: readonly Arrow[];
}

export interface Chosen extends Linked {
  readonly slice: TraceSliceResponse | null;
  /** Why there is none. */
  readonly error: ApiError | null;
}

const NOTHING: Linked = { selected: null, related: [], arrows: [] };

/** Where a slice and its partners lie, and the arrows between them. Pure. */
function linkedOf(slice: TraceSliceResponse | null, base: bigint): Linked {
  if (slice === null) return NOTHING;
  const startNs = since(base, BigInt(slice.startNs));
  const selected: Place = {
    trackKey: slice.track,
    level: slice.level,
    startNs,
    endNs: startNs + slice.durationNs,
  };
  const related = slice.partners.map((one) => ({
    trackKey: one.track,
    level: one.level,
    startNs: startNs + one.startNs,
    endNs: startNs + one.startNs + one.durationNs,
    outgoing: one.outgoing,
  }));
  const arrows = related.map((place) =>
    place.outgoing ? { from: selected, to: place } : { from: place, to: selected },
  );
  return { selected, related, arrows };
}

export function useChosen(
  client: Client,
  run: string,
  asked: SliceRef | null,
  base: bigint,
): Chosen {
  const { data, error } = useOnce(
    client,
    "trace_slice",
    asked === null ? null : { run, source: asked.source, row: asked.row },
  );
  // While another one is asked for the last answer is still there.
  const slice =
    data !== null && data.source === asked?.source && data.row === asked.row
      ? data
      : null;
  const linked = useMemo(() => linkedOf(slice, base), [slice, base]);
  return { slice, error: data === null ? error : null, ...linked };
}

export interface ChosenInstant {
  readonly instant: TraceInstantResponse | null;
  /** Where its mark lies. */
  readonly place: Place | null;
  /** Why there is none. */
  readonly error: ApiError | null;
}

export function useInstant(
  client: Client,
  run: string,
  asked: SliceRef | null,
  base: bigint,
): ChosenInstant {
  const { data, error } = useOnce(
    client,
    "trace_instant",
    asked === null ? null : { run, source: asked.source, row: asked.row },
  );
  // While another one is asked for the last answer is still there.
  const instant =
    data !== null && data.source === asked?.source && data.row === asked.row
      ? data
      : null;
  const place = useMemo((): Place | null => {
    if (instant === null) return null;
    const startNs = since(base, BigInt(instant.timeNs));
    return { trackKey: instant.track, level: MARK_LEVEL, startNs, endNs: startNs };
  }, [instant, base]);
  return { instant, place, error: data === null ? error : null };
}

/** All instants of the tracks shown, up to the server's bound; null without any. */
export function useInstants(
  client: Client,
  run: string,
  tracks: string,
): TraceSearchResponse | null {
  const asked = useMemo(
    () => (tracks === "" ? null : { run, tracks, only: "instants" }),
    [run, tracks],
  );
  return useOnce(client, "trace_search", asked).data;
}
