/**
 * What each stack holds in every column of a tile. The answer says only what changes from
 * column to column; the state is kept at some of them, so that reading any other is a few
 * steps from there. That is what the flamegraph does at every move of the mouse. Pure.
 */

import type { AllocationHoldersResponse } from "../../../api/types.gen";

/** Columns from one state that is kept to the next. */
const EVERY = 32;

export class HolderColumns {
  /** By slot; the last one stands for all others. */
  readonly stack: Int32Array;
  readonly numSlots: number;
  readonly numColumns: number;
  readonly moment: Int32Array;
  /** By slot but the last; see `Held`. */
  readonly category: Uint8Array;
  /** Every so many columns: bytes by slot before the column, and its first change. */
  readonly #states: Float64Array;
  readonly #begin: Int32Array;
  readonly #answer: AllocationHoldersResponse;
  #highest: Float64Array | null = null;

  constructor(answer: AllocationHoldersResponse) {
    const { stack, moment, category } = answer;
    this.category = category;
    this.stack = stack;
    this.moment = moment;
    this.numSlots = stack.length;
    this.numColumns = moment.length;
    this.#answer = answer;
    const num = Math.ceil(this.numColumns / EVERY);
    this.#states = new Float64Array(num * this.numSlots);
    this.#begin = new Int32Array(num);
    const running = new Float64Array(this.numSlots);
    let next = 0;
    for (let state = 0; state < num; state += 1) {
      this.#states.set(running, state * this.numSlots);
      this.#begin[state] = next;
      next = this.#apply(running, next, (state + 1) * EVERY - 1);
    }
  }

  /** Bytes by slot in a column. */
  at(column: number): Float64Array {
    const state = Math.floor(column / EVERY);
    const from = state * this.numSlots;
    const bytes = this.#states.slice(from, from + this.numSlots);
    this.#apply(bytes, this.#begin[state] ?? 0, column);
    return bytes;
  }

  /** The most that each slot holds in any column. */
  highest(): Float64Array {
    if (this.#highest !== null) return this.#highest;
    const { slot, change } = this.#answer;
    const running = new Float64Array(this.numSlots);
    const most = new Float64Array(this.numSlots);
    for (let i = 0; i < change.length; i += 1) {
      const own = slot[i] ?? 0;
      const bytes = (running[own] ?? 0) + (change[i] ?? 0);
      running[own] = bytes;
      if (bytes > (most[own] ?? 0)) most[own] = bytes;
    }
    this.#highest = most;
    return most;
  }

  /** Adds the changes from `next` to the end of a column; the first one after it. */
  #apply(bytes: Float64Array, next: number, last: number): number {
    const { column, slot, change } = this.#answer;
    let at = next;
    for (; at < change.length && (column[at] ?? 0) <= last; at += 1) {
      const own = slot[at] ?? 0;
      bytes[own] = (bytes[own] ?? 0) + (change[at] ?? 0);
    }
    return at;
  }
}
