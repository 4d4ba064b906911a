import type { AllocationColour, AllocationsResponse } from "../../api/types.gen";
import { upperBound } from "../../model/lines/polyline";
import { runBelow, stackedBelow, type Runs } from "../../render/raster/runs";

/** As requested: events or times, and bytes; null: no limit. */
export interface TileSpan {
  readonly low: number | null;
  readonly high: number | null;
  readonly y0: number | null;
  readonly y1: number | null;
  readonly px: number;
  readonly rows: number;
}

export interface BlockFacts {
  readonly slot: number;
  readonly life: number;
  readonly size: number;
  /** Events; see `AllocationLives`. */
  readonly born: number;
  readonly freed: number;
  readonly gone: number;
  readonly stack: number;
  readonly group: number;
  readonly band: number;
}

export class BlockTile {
  readonly runs: Runs;
  readonly numColumns: number;
  readonly low: number;
  readonly high: number;
  /** By slot, and one more: its first run. */
  readonly #runStart: Int32Array;
  #lit: { readonly stack: number; readonly slots: readonly number[] } | null = null;

  constructor(
    readonly answer: AllocationsResponse,
    readonly span: TileSpan,
    readonly colour: AllocationColour,
  ) {
    const { columns, lives, runs, bandBytes, rest } = answer;
    this.numColumns = columns.moment.length;
    this.low = columns.edge[0] ?? 0;
    this.high = columns.edge[this.numColumns] ?? this.low;
    this.runs = {
      edges: columns.edge,
      slot: runs.slot,
      first: runs.first,
      last: runs.last,
      offset: runs.offset,
      size: lives.size,
      band: lives.band,
      below: stackedBelow(bandBytes, this.numColumns),
      height: bandBytes,
      rest,
      yLow: span.y0 ?? 0,
      yHigh: span.y1 ?? Number.MAX_VALUE,
    };
    this.#runStart = new Int32Array(lives.life.length + 1).fill(runs.slot.length);
    for (let run = runs.slot.length - 1; run >= 0; run -= 1) {
      this.#runStart[runs.slot[run] ?? 0] = run;
    }
  }

  /** Frees the arrays of blocks; columns and bands stay valid. */
  free(): void {
    const { slot, first, last, offset } = this.runs;
    const { life, size, born, freed, gone, stack, group, band } = this.answer.lives;
    const ofLives = [life, size, born, freed, gone, stack, group, band];
    for (const { byteLength, buffer } of [slot, first, last, offset, ...ofLives]) {
      // Several arrays may share one response body.
      const isWhole = byteLength > 0 && byteLength === buffer.byteLength;
      if (isWhole && buffer instanceof ArrayBuffer) freeBuffer(buffer);
    }
    this.#lit = null;
  }

  get numRuns(): number {
    return this.runs.slot.length;
  }

  /** -1 outside. */
  columnAt(x: number): number {
    if (!(x >= this.low && x <= this.high) || this.numColumns === 0) return -1;
    return Math.min(upperBound(this.answer.columns.edge, x), this.numColumns) - 1;
  }

  /** The last column not after a moment, else the first. */
  columnOf(moment: number): number {
    return Math.max(upperBound(this.answer.columns.moment, moment) - 1, 0);
  }

  middleOf(column: number): number {
    const { edge } = this.answer.columns;
    return ((edge[column] ?? 0) + (edge[column + 1] ?? 0)) / 2;
  }

  /** World y. */
  middleOfRun(run: number, column: number): number {
    const size = this.runs.size[this.runs.slot[run] ?? 0] ?? 0;
    return runBelow(this.runs, run, column) + size / 2;
  }

  factsOf(slot: number): BlockFacts {
    const { lives } = this.answer;
    return {
      slot,
      life: lives.life[slot] ?? -1,
      size: lives.size[slot] ?? NaN,
      born: lives.born[slot] ?? -1,
      freed: lives.freed[slot] ?? -1,
      gone: lives.gone[slot] ?? -1,
      stack: lives.stack[slot] ?? -1,
      group: lives.group[slot] ?? 0,
      band: lives.band[slot] ?? 0,
    };
  }

  /** -1: no run in this tile. */
  slotOf(life: number): number {
    return this.answer.lives.life.indexOf(life);
  }

  /** Its runs: [first, end). */
  runsOf(slot: number): readonly [number, number] {
    return [this.#runStart[slot] ?? 0, this.#runStart[slot + 1] ?? 0];
  }

  slotsOf(stack: number): readonly number[] {
    if (this.#lit?.stack !== stack) {
      const slots: number[] = [];
      const { stack: of } = this.answer.lives;
      // A plain loop: runs at every move of the pointer, over up to 100,000 blocks.
      for (let slot = 0; slot < of.length; slot += 1) {
        if (of[slot] === stack) slots.push(slot);
      }
      this.#lit = { stack, slots };
    }
    return this.#lit.slots;
  }

  /** Bytes of a group by column; colours that are stacked are the bands. */
  bytesOf(group: number): Float64Array {
    const { groupBytes, bandBytes } = this.answer;
    const all = groupBytes.length > 0 ? groupBytes : bandBytes;
    return all.subarray(group * this.numColumns, (group + 1) * this.numColumns);
  }

  /** Columns [from, to) at one height: a run moves with the bands below. */
  eachPart(run: number, take: (from: number, to: number) => void): void {
    const { first, last, below, band, slot } = this.runs;
    const row = (band[slot[run] ?? 0] ?? 0) * this.numColumns;
    const end = (last[run] ?? 0) + 1;
    for (let column = first[run] ?? 0; column < end;) {
      let next = column + 1;
      while (next < end && below[row + next] === below[row + column]) next += 1;
      take(column, next);
      column = next;
    }
  }

  /** From bottom to top. */
  runsAt(column: number): readonly number[] {
    const { slot, first, last, offset, band } = this.runs;
    const runs: number[] = [];
    for (let run = 0; run < slot.length; run += 1) {
      if ((first[run] ?? 0) <= column && column <= (last[run] ?? 0)) runs.push(run);
    }
    const bandOf = (run: number): number => band[slot[run] ?? 0] ?? 0;
    return runs.sort(
      (a, b) => bandOf(a) - bandOf(b) || (offset[a] ?? 0) - (offset[b] ?? 0),
    );
  }
}

/** `transfer` exists since 2024. */
type Movable = ArrayBuffer & { transfer?: (length: number) => unknown };

/**
 * Only for buffers that a script made. Of those that the browser made (response bodies,
 * messages) Chromium retains the memory and stops counting it, so that garbage
 * collection comes later (measured: 220 MB instead of 150). Without `transfer` the
 * collector frees it.
 */
function freeBuffer(buffer: Movable): void {
  buffer.transfer?.(0);
}
