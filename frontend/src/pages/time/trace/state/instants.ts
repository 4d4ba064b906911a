/** The chosen instant, and the list of all of them by which one goes to the next. */

import { useMemo } from "preact/hooks";
import type { ApiError, Client } from "../../../../api/client";
import type {
  TraceInstantResponse,
  TraceSearchResponse,
} from "../../../../api/types.gen";
import { useOnce } from "../../../../api/use_once";
import { MARK_LEVEL } from "../tiles/instants";
import { since, type SliceRef } from "./params";
import type { Place } from "../plot/place";

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
