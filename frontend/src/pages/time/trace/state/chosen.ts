/** The chosen slice: asked for by its row, with the places of what it is linked with. */

import { useMemo } from "preact/hooks";
import type { ApiError, Client } from "../../../../api/client";
import type { TraceSliceResponse } from "../../../../api/types.gen";
import { useOnce } from "../../../../api/use_once";
import { since, type SliceRef } from "./params";
import type { Arrow, Place } from "../plot/place";

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
