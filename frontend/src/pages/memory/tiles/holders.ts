/**
 * Bytes per stack in every column of a tile. The answer has only the changes between
 * columns; the flamegraph reads one column at every move of the pointer.
 */

import type { AllocationHoldersResponse } from "../../../api/types.gen";

export class HolderColumns {
  /** By slot; the last one is all other stacks. */
  readonly stack: Int32Array;
  readonly moment: Int32Array;
  /** By slot but the last; see `Held`. */
  readonly category: Uint8Array;
  /** The highest value of each slot in any column. */
  readonly highest: Float64Array;

  constructor(private readonly answer: AllocationHoldersResponse) {
    const { stack, moment, category } = answer;
    this.stack = stack;
    this.moment = moment;
    this.category = category;
    this.highest = new Float64Array(stack.length);
    this.#sum(moment.length, (slot, bytes) => {
      if (bytes > (this.highest[slot] ?? 0)) this.highest[slot] = bytes;
    });
  }

  /** Bytes by slot in a column. */
  at(column: number): Float64Array {
    return this.#sum(column);
  }

  /** Sums all changes up to the end of a column; `each` receives every new value. */
  #sum(last: number, each?: (slot: number, bytes: number) => void): Float64Array {
    const { column, slot, change } = this.answer;
    const held = new Float64Array(this.stack.length);
    for (let i = 0; i < change.length && (column[i] ?? 0) <= last; i += 1) {
      const own = slot[i] ?? 0;
      const bytes = (held[own] ?? 0) + (change[i] ?? 0);
      held[own] = bytes;
      each?.(own, bytes);
    }
    return held;
  }
}
