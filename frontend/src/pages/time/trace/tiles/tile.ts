import type {
  TraceFamily,
  TraceLine,
  TraceSlicesResponse,
} from "../../../../api/types.gen";
import type { XRange } from "../../../../widgets/plot/range";
import type { Place } from "../plot/layout";
import { since } from "../state/params";

/** A slice, a block of short ones, or instants that coincide. */
export interface Piece extends Place {
  readonly row: number;
  readonly name: string;
  readonly family: TraceFamily;
  readonly count: number;
  readonly busyNs: number;
}

export class TraceTile implements XRange {
  /** Nanoseconds since the timeline's base. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly lane: Int32Array;
  readonly low: number;
  readonly high: number;
  /** By track, in order of time. */
  readonly marks: ReadonlyMap<string, readonly Piece[]>;

  /** `tracks`: keys of the requested ones. */
  constructor(
    readonly answer: TraceSlicesResponse,
    base: bigint,
    high: number,
    readonly tracks: ReadonlySet<string>,
  ) {
    const { start, duration, unitNs, laneStart, lanes } = answer;
    const shift = since(base, answer.t0);
    this.low = shift;
    this.high = high;
    // Loops: a mapping function for each takes several times as long.
    this.start = new Float64Array(start.length);
    this.end = new Float64Array(start.length);
    for (let i = 0; i < start.length; i += 1) {
      const begin = start[i] ?? 0;
      this.start[i] = shift + begin * unitNs;
      this.end[i] = shift + (begin + (duration[i] ?? 0)) * unitNs;
    }
    this.lane = new Int32Array(start.length);
    const marks = new Map<string, readonly Piece[]>();
    lanes.forEach(({ track, level }, lane) => {
      const [first = 0, stop = 0] = laneStart.subarray(lane, lane + 2);
      this.lane.fill(lane, first, stop);
      if (level >= 0) return;
      const own = Array.from({ length: stop - first }, (_, i) => this.piece(first + i));
      marks.set(track, own);
    });
    this.marks = marks;
  }

  get numPieces(): number {
    return this.start.length;
  }

  levelOf(piece: number): number {
    return this.answer.lanes[this.lane[piece] ?? 0]?.level ?? 0;
  }

  nameOf(piece: number): string {
    return this.answer.names[this.answer.name[piece] ?? -1] ?? "";
  }

  familyOf(piece: number): TraceFamily {
    return this.answer.families[this.answer.family[piece] ?? 0] ?? "other";
  }

  piece(index: number): Piece {
    const { lanes, row, count, busy, unitNs } = this.answer;
    return {
      trackKey: lanes[this.lane[index] ?? 0]?.track ?? "",
      level: this.levelOf(index),
      row: row[index] ?? 0,
      startNs: this.start[index] ?? 0,
      endNs: this.end[index] ?? 0,
      name: this.nameOf(index),
      family: this.familyOf(index),
      count: count[index] ?? 1,
      busyNs: (busy[index] ?? 0) * unitNs,
    };
  }

  linesOf(trackKey: string): readonly TraceLine[] {
    return this.answer.lines.filter(({ track }) => track === trackKey);
  }

  /** The value of the last point before a time. */
  valueAt(line: TraceLine, ns: number): number | null {
    const index = line.timeNs.findLastIndex((time) => time <= ns - this.low);
    return line.value[index] ?? null;
  }
}

/** From the finest tile where it reaches, else from coarser ones. */
export function marksOf(
  tiles: readonly TraceTile[],
  trackKey: string,
): readonly Piece[] {
  const finest = tiles.at(-1);
  const own = finest?.marks.get(trackKey) ?? [];
  if (finest === undefined || tiles.length === 1) return own;
  const coarse = tiles[0]?.marks.get(trackKey) ?? [];
  if (!finest.tracks.has(trackKey)) return coarse;
  const beside = coarse.filter(
    ({ startNs }) => startNs < finest.low || startNs > finest.high,
  );
  return [...beside, ...own].sort((a, b) => a.startNs - b.startNs);
}

/** Instants are clicked this far beside them. */
const NEAR_PX = 7;

export function markNear(
  marks: readonly Piece[],
  ns: number,
  nsPerPx: number,
): Piece | null {
  let best: Piece | null = null;
  let least = NEAR_PX * nsPerPx;
  for (const mark of marks) {
    const apart = Math.abs(mark.startNs - ns);
    if (apart <= least) [best, least] = [mark, apart];
  }
  return best;
}
