/** The tracks in sight, those that are pinned, and what is drawn of both. */

import { useMemo } from "preact/hooks";
import type { TraceResponse } from "../../../../api/types.gen";
import { useLive } from "../../../../api/live/use_live";
import type { ViewProps } from "../../../shared/view_props";
import type { XRange } from "../../../../widgets/plot/range";
import { layoutOf, pinnedTracks, tracksNamed, tracksQuery } from "../plot/layout";
import { tileQuery, useTraceTiles } from "../tiles/loader";
import { TraceTile } from "../tiles/tile";
import type { TraceState } from "./params";

/** Of the strip: finer than its columns. */
const OVERVIEW_PX = 1_200;

/** The trace's own time, in ns from `base`. */
export interface Extent extends XRange {
  readonly base: bigint;
}

export function useTracks(
  { client, run }: ViewProps,
  answer: TraceResponse,
  { closed, pins, only }: Pick<TraceState, "closed" | "pins" | "only">,
  extent: Extent,
) {
  const { baseNs, endNs, sources } = answer;
  const layout = useMemo(
    () => layoutOf(tracksNamed(answer, only), closed),
    [answer, closed, only],
  );
  const pinned = useMemo(
    () => layoutOf(pinnedTracks(answer, pins), closed, true),
    [answer, closed, pins],
  );
  const made = sources.map(({ id, state: loadState, numSlices }) => [
    id,
    loadState,
    numSlices,
  ]);
  const stamp = JSON.stringify([baseNs, endNs, made]);
  const tiles = useTraceTiles(client, run.id, extent, layout, stamp);
  const pinnedTiles = useTraceTiles(client, run.id, extent, pinned, stamp);
  const tracks = useMemo(() => {
    const holdsAny = layout.rows.filter(({ lanes, hasMarks }) => lanes > 0 || hasMarks);
    return tracksQuery(holdsAny);
  }, [layout]);
  return { layout, pinned, tiles, pinnedTiles, tracks };
}

/** All tracks, not only the visible ones: strip and legend stay as they are. */
export function useWhole(
  { client, run }: ViewProps,
  answer: TraceResponse,
  extent: Extent,
): TraceTile | null {
  const { base } = extent;
  const every = useMemo(
    () => tracksQuery(layoutOf(answer, "").rows.filter(({ lanes }) => lanes > 0)),
    [answer],
  );
  const overview = useLive(
    client,
    "trace_slices",
    every === ""
      ? null
      : tileQuery(run.id, base, every, { ...extent, px: OVERVIEW_PX }),
  ).data;
  return useMemo(
    () => overview && new TraceTile(overview, base, extent.high, new Set()),
    [overview, extent],
  );
}
