import { describe, expect, it } from "vitest";
import type { AllocationHoldersResponse } from "../../../api/types.gen";
import { HolderColumns } from "./use_tiles";

/** Three slots over many columns: one grows by a byte a column, one comes and goes. */
function answer(columns: number): AllocationHoldersResponse {
  const column: number[] = [];
  const slot: number[] = [];
  const change: number[] = [];
  const push = (c: number, s: number, by: number): void => {
    column.push(c);
    slot.push(s);
    change.push(by);
  };
  for (let c = 0; c < columns; c += 1) {
    push(c, 0, 1);
    if (c % 10 === 3) push(c, 1, 500);
    if (c % 10 === 7) push(c, 1, -500);
  }
  return {
    device: 0,
    moment: Int32Array.from({ length: columns }, (_, i) => i * 5),
    stack: Int32Array.of(4, 9, -2),
    column: Uint16Array.from(column),
    slot: Uint16Array.from(slot),
    change: Float64Array.from(change),
    category: Uint8Array.of(0, 1),
    allocated: new Float64Array(columns).fill(7),
  };
}

describe("holders by column", () => {
  const holders = new HolderColumns(answer(1000));

  it("are the running sums of the changes, in every column", () => {
    for (const column of [0, 2, 3, 6, 7, 31, 32, 33, 63, 64, 655, 999]) {
      const inside = column % 10 >= 3 && column % 10 < 7;
      expect([...holders.bytesAt(column)]).toEqual([column + 1, inside ? 500 : 0, 0]);
    }
  });

  it("read one column without changing another", () => {
    const first = holders.bytesAt(40);
    first[0] = 0;
    expect(holders.bytesAt(40)[0]).toBe(41);
  });

  it("know the most of each, even inside a column that ends lower", () => {
    expect([...holders.highest]).toEqual([1000, 500, 0]);
  });

  it("of nothing are nothing", () => {
    const none = new HolderColumns(answer(0));
    expect([...none.highest]).toEqual([0, 0, 0]);
  });
});
