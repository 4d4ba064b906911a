/** One tile of a timeline: slices and blocks by lane, and counters. Pure. */

import type {
  TraceFamily,
  TraceLine,
  TraceSlicesResponse,
} from "../../../../api/types.gen";
import { marksByTrack, type Mark } from "./instants";

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
