/**
 * One answer of `/allocations` as it is drawn and read: where its blocks lie, which
 * column stands at x, and which runs belong to a stack. Pure.
 */

import type { AllocationColour, AllocationsResponse } from "../../api/types.gen";
import { upperBound } from "../../model/lines/polyline";
import { runBelow, stackedBelow, type Runs } from "../../render/raster/runs";

/** What was asked for: events or times, and bytes; null: everything. */
export interface TileSpan {
  readonly low: number | null;
  readonly high: number | null;
  readonly y0: number | null;
  readonly y1: number | null;
  /** Columns and rows of it. */
  readonly px: number;
  readonly rows: number;
}

/** An allocation as a tile knows it. */
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
  /** By slot, and one more: where its runs begin. */
  readonly #runStart: Int32Array;
  /** Of the stack asked for last. */
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

  /** Gives the memory of its blocks back; what it says of columns and bands stays. */
  free(): void {
    const { slot, first, last, offset } = this.runs;
    const { life, size, born, freed, gone, stack, group, band } = this.answer.lives;
    const ofLives = [life, size, born, freed, gone, stack, group, band];
    for (const { byteLength, buffer } of [slot, first, last, offset, ...ofLives]) {
      // Parts of a body lie beside others in it.
      const isWhole = byteLength > 0 && byteLength === buffer.byteLength;
      if (isWhole && buffer instanceof ArrayBuffer) freeBuffer(buffer);
    }
    this.#lit = null;
  }

  get numRuns(): number {
    return this.runs.slot.length;
  }

  /** The column at x; -1 outside. */
  columnAt(x: number): number {
    if (!(x >= this.low && x <= this.high) || this.numColumns === 0) return -1;
    return Math.min(upperBound(this.answer.columns.edge, x), this.numColumns) - 1;
  }

  /** The column that shows a moment best: the last one not after it, else the first. */
  columnOf(moment: number): number {
    return Math.max(upperBound(this.answer.columns.moment, moment) - 1, 0);
  }

  middleOf(column: number): number {
    const { edge } = this.answer.columns;
    return ((edge[column] ?? 0) + (edge[column + 1] ?? 0)) / 2;
  }

  /** World y of the middle of a run in one of its columns. */
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

  /** The row of an allocation; -1 where it has no run here. */
  slotOf(life: number): number {
    return this.answer.lives.life.indexOf(life);
  }

  /** Rows of the runs of an allocation: from the first up to, without, the second. */
  runsOf(slot: number): readonly [number, number] {
    return [this.#runStart[slot] ?? 0, this.#runStart[slot + 1] ?? 0];
  }

  /** Allocations of one stack that have runs here. */
  slotsOf(stack: number): readonly number[] {
    if (this.#lit?.stack !== stack) {
      const slots: number[] = [];
      const { stack: of } = this.answer.lives;
      // At every move of the pointer, and there may be a hundred thousand.
      for (let slot = 0; slot < of.length; slot += 1) {
        if (of[slot] === stack) slots.push(slot);
      }
      this.#lit = { stack, slots };
    }
    return this.#lit.slots;
  }

  /** The level parts of a run, which moves with what lies below its band: columns from, to. */
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

  /** The blocks of a column from below upwards, as rows of runs. */
  runsAt(column: number): readonly number[] {
    const { slot, first, last, offset, band } = this.runs;
    const found: number[] = [];
    for (let run = 0; run < slot.length; run += 1) {
      if ((first[run] ?? 0) <= column && column <= (last[run] ?? 0)) found.push(run);
    }
    const bandOf = (run: number): number => band[slot[run] ?? 0] ?? 0;
    return found.sort(
      (a, b) => bandOf(a) - bandOf(b) || (offset[a] ?? 0) - (offset[b] ?? 0),
    );
  }
}

/** Bytes of the blocks that are drawn, by colour and column, and of what is too thin. */
export interface GroupBytes {
  /** By group: whether it holds anything in any column. */
  readonly occurs: Uint8Array;
  /** Groups x columns. */
  readonly drawn: Float64Array;
  /** By column; 0 where every thin one could be told to a group. */
  readonly thin: Float64Array;
}

/**
 * What each colour holds in each column. Thin blocks belong to a colour only where the
 * colours are what is stacked.
 */
export function groupBytes(tile: BlockTile): GroupBytes {
  const { groups, bands, lives, rest, bandBytes } = tile.answer;
  const { slot, first, last, size } = tile.runs;
  const columns = tile.numColumns;
  const thin = new Float64Array(columns);
  const isStacked =
    groups.length === bands.length &&
    groups.every(({ key }, i) => key === bands[i]?.key);
  const drawn = isStacked ? bandBytes : new Float64Array(groups.length * columns);
  if (!isStacked) {
    rest.forEach((bytes, i) => {
      thin[i % columns] = (thin[i % columns] ?? 0) + bytes;
    });
    const add = (at: number, bytes: number): void => {
      drawn[at] = (drawn[at] ?? 0) + bytes;
    };
    // First what each column changes, then the sums: runs are many, and long.
    slot.forEach((block, run) => {
      const bytes = size[block] ?? 0;
      const row = (lives.group[block] ?? 0) * columns;
      add(row + (first[run] ?? 0), bytes);
      const end = (last[run] ?? 0) + 1;
      if (end < columns) add(row + end, -bytes);
    });
    for (let at = 1; at < drawn.length; at += 1) {
      if (at % columns > 0) add(at, drawn[at - 1] ?? 0);
    }
  }
  const occurs = Uint8Array.from(groups, (_, group) => {
    const own = drawn.subarray(group * columns, (group + 1) * columns);
    return own.some((bytes) => bytes > 0) ? 1 : 0;
  });
  return { occurs, drawn, thin };
}

/** An `ArrayBuffer` as new as 2024. */
type Movable = ArrayBuffer & { transfer?: (length: number) => unknown };

/**
 * Free a buffer that a script made: reading it finds nothing from now on. Never one that
 * the browser made, as the body of an answer or what came in a message: Chromium holds
 * on to its memory and only stops counting it, so that the collector comes later still
 * (measured: 220 MB in place of 150). Browsers that cannot do it leave it to the collector.
 */
function freeBuffer(buffer: Movable): void {
  buffer.transfer?.(0);
}
