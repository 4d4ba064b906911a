/** Slices and instants by name: asked for a moment after the last letter, and gone through. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client } from "../../../../api/client";
import { useOnce } from "../../../../api/use_once";
import type { TraceSearchResponse } from "../../../../api/types.gen";
import { MARK_LEVEL } from "../tiles/instants";
import { since, type SliceRef } from "./params";
import type { Place } from "../plot/place";

const PAUSE_MS = 250;

export interface Search {
  readonly hits: TraceSearchResponse | null;
  readonly at: number | null;
  readonly setAt: (at: number | null) => void;
}

/** Where a hit lies, and what it is. Pure. */
export function hitAt(
  hits: TraceSearchResponse,
  at: number,
  base: bigint,
): { readonly place: Place; readonly ref: SliceRef; readonly isInstant: boolean } {
  const startNs = (hits.startNs[at] ?? 0) + since(base, BigInt(hits.t0));
  const trackKey = hits.tracks[hits.track[at] ?? 0] ?? "";
  const isInstant = hits.isInstant[at] === 1;
  const endNs = startNs + (hits.durationNs[at] ?? 0);
  const level = isInstant ? MARK_LEVEL : (hits.level[at] ?? 0);
  const source = trackKey.slice(0, trackKey.lastIndexOf(":"));
  return {
    place: { trackKey, level, startNs, endNs },
    ref: { source, row: hits.row[at] ?? 0 },
    isInstant,
  };
}

/** The hit after (or before) a time; round at the ends. `times` ascend. Pure. */
export function hitBeside(
  times: ArrayLike<number>,
  at: number | null,
  sign: 1 | -1,
  fromNs: number,
): number | null {
  const count = times.length;
  if (count === 0) return null;
  if (at !== null && at < count) return (at + sign + count) % count;
  let first = 0;
  while (first < count && (times[first] ?? 0) < fromNs) first += 1;
  return sign > 0 ? first % count : (first - 1 + count) % count;
}

/** The first after (or last before) a time; null at the end. `times` ascend. Pure. */
export function timeBeside(
  times: ArrayLike<number>,
  ns: number,
  sign: 1 | -1,
): number | null {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const time = times[middle] ?? 0;
    if (sign > 0 ? time <= ns : time < ns) low = middle + 1;
    else high = middle;
  }
  const at = sign > 0 ? low : low - 1;
  return at >= 0 && at < times.length ? at : null;
}

/** The neighbour in a list of one that is in it: several may have one time. Pure. */
export function indexBeside(
  hits: TraceSearchResponse,
  own: { readonly track: string; readonly row: number },
  sign: 1 | -1,
): number | null {
  const which = hits.tracks.indexOf(own.track);
  const at = hits.row.findIndex((row, i) => row === own.row && hits.track[i] === which);
  if (at < 0) return null;
  const beside = at + sign;
  return beside >= 0 && beside < hits.row.length ? beside : null;
}

export function useSearch(
  client: Client,
  run: string,
  tracks: string,
  find: string,
): Search {
  const [settled, setSettled] = useState(find);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(find), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [find]);
  const asked = useMemo(
    () => (settled === "" || tracks === "" ? null : { run, tracks, text: settled }),
    [run, tracks, settled],
  );
  const live = useOnce(client, "trace_search", asked);
  useEffect(() => setAt(null), [settled]);
  return { hits: find === "" || asked === null ? null : live.data, at, setAt };
}
