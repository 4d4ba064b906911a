/** What happened at one time: which instants a tile has on a track, and near a place. Pure. */

import type { TraceInstantKind } from "../../../../api/types.gen";
import type { Place } from "../plot/place";
import type { TraceTile } from "./tile";

/** One instant, or several that a few pixels cannot tell apart. */
export interface Mark {
  readonly trackKey: string;
  /** Of the first of them. */
  readonly row: number;
  readonly timeNs: number;
  readonly name: string;
  readonly kind: TraceInstantKind;
  readonly count: number;
}

/** The level that the lane of instants counts as: above the outermost one. */
export const MARK_LEVEL = -1;

/** Half of what a mark takes. */
export const MARK_PX = 5;

/** Marks are clicked this far beside them. */
const NEAR_PX = 7;

export const KIND_WORDS: Readonly<Record<TraceInstantKind, string>> = {
  oom: "Out of memory",
  checkpoint: "Checkpoint",
  other: "Instant",
};

/** Those of a tile, by track, each in order of time. */
export function marksByTrack(
  tile: Pick<TraceTile, "answer" | "lowNs">,
): ReadonlyMap<string, readonly Mark[]> {
  const { instants } = tile.answer;
  const found = new Map<string, Mark[]>();
  instants.track.forEach((which, i) => {
    const trackKey = instants.tracks[which] ?? "";
    const mark = {
      trackKey,
      row: instants.row[i] ?? 0,
      timeNs: tile.lowNs + (instants.timeNs[i] ?? 0),
      name: instants.names[instants.name[i] ?? 0] ?? "",
      kind: instants.kinds[instants.kind[i] ?? 0] ?? "other",
      count: instants.count[i] ?? 1,
    };
    const known = found.get(trackKey);
    if (known === undefined) found.set(trackKey, [mark]);
    else known.push(mark);
  });
  return found;
}

/** The marks of a track: of the finest tile where it reaches, else of coarser ones. */
export function marksOf(
  tiles: readonly TraceTile[],
  trackKey: string,
): readonly Mark[] {
  const finest = tiles.at(-1);
  if (finest === undefined) return [];
  const own = finest.marks.get(trackKey) ?? [];
  if (tiles.length === 1) return own;
  const coarse = tiles[0]?.marks.get(trackKey) ?? [];
  if (!finest.tracks.has(trackKey)) return coarse;
  const beside = coarse.filter(
    ({ timeNs }) => timeNs < finest.lowNs || timeNs > finest.highNs,
  );
  return [...beside, ...own].sort((a, b) => a.timeNs - b.timeNs);
}

/** The mark nearest to a time, where it is near on the screen. */
export function markNear(
  marks: readonly Mark[],
  ns: number,
  nsPerPx: number,
): Mark | null {
  let best: Mark | null = null;
  let least = NEAR_PX * nsPerPx;
  for (const mark of marks) {
    const apart = Math.abs(mark.timeNs - ns);
    if (apart <= least) {
      best = mark;
      least = apart;
    }
  }
  return best;
}

export function placeOfMark({ trackKey, timeNs }: Mark): Place {
  return { trackKey, level: MARK_LEVEL, startNs: timeNs, endNs: timeNs };
}
