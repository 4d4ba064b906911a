/** One tile of a timeline: slices and blocks by lane, and counters. Pure. */

import type {
  TraceFamily,
  TraceLine,
  TraceSlicesResponse,
  TraceInstantKind,
} from "../../../../api/types.gen";
import type { Place } from "../plot/layout";

/** What is drawn as one: a slice, or a block of short ones. */
export interface Piece {
  readonly trackKey: string;
  readonly level: number;
  readonly row: number;
  readonly startNs: number;
  readonly durationNs: number;
  readonly name: string;
  readonly family: TraceFamily;
  readonly count: number;
  readonly busyNs: number;
}

const NO_NAME = 0xffff;

export class TraceTile {
  /** Nanoseconds since the timeline's base, by piece. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** By piece: its lane. */
  readonly lane: Int32Array;
  readonly lowNs: number;
  readonly highNs: number;
  readonly lines: ReadonlyMap<string, readonly TraceLine[]>;
  /** Instants by track, in order of time. */
  readonly marks: ReadonlyMap<string, readonly Mark[]>;

  /** `tracks`: keys of those that were asked for. */
  constructor(
    readonly answer: TraceSlicesResponse,
    base: bigint,
    highNs: number,
    readonly tracks: ReadonlySet<string>,
  ) {
    const { start, duration, unitNs, laneStart } = answer;
    const shift = Number(BigInt(answer.t0) - base);
    this.lowNs = shift;
    this.highNs = highNs;
    // Loops: a mapping function for each of them takes several times as long.
    this.start = new Float64Array(start.length);
    this.end = new Float64Array(start.length);
    for (let i = 0; i < start.length; i += 1) {
      const begin = start[i] ?? 0;
      this.start[i] = shift + begin * unitNs;
      this.end[i] = shift + (begin + (duration[i] ?? 0)) * unitNs;
    }
    this.lane = new Int32Array(start.length);
    for (let lane = 0; lane + 1 < laneStart.length; lane += 1) {
      this.lane.fill(lane, laneStart[lane], laneStart[lane + 1]);
    }
    const lines = new Map<string, TraceLine[]>();
    for (const line of answer.lines) {
      const known = lines.get(line.track);
      if (known === undefined) lines.set(line.track, [line]);
      else known.push(line);
    }
    this.lines = lines;
    this.marks = marksByTrack(this);
  }

  get numPieces(): number {
    return this.start.length;
  }

  nameOf(piece: number): string {
    const index = this.answer.name[piece] ?? NO_NAME;
    return index === NO_NAME ? "" : (this.answer.names[index] ?? "");
  }

  familyOf(piece: number): TraceFamily {
    return this.answer.families[this.answer.family[piece] ?? 0] ?? "other";
  }

  piece(index: number): Piece {
    const { lanes, row, count, busy, unitNs } = this.answer;
    const lane = lanes[this.lane[index] ?? 0];
    const startNs = this.start[index] ?? 0;
    return {
      trackKey: lane?.track ?? "",
      level: lane?.level ?? 0,
      row: row[index] ?? 0,
      startNs,
      durationNs: (this.end[index] ?? 0) - startNs,
      name: this.nameOf(index),
      family: this.familyOf(index),
      count: count[index] ?? 1,
      busyNs: (busy[index] ?? 0) * unitNs,
    };
  }

  /** A counter's value at a time: that of the last point before it. */
  valueAt(line: TraceLine, ns: number): number | null {
    const at = ns - this.lowNs;
    let [low, high] = [0, line.timeNs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((line.timeNs[middle] ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? null : (line.value[low - 1] ?? null);
  }
}

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
