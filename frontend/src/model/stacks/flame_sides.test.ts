import { describe, expect, test } from "vitest";
import { difference, frameTotals, sandwich } from "./flame_sides";

const PATHS = [
  [1, 2, 3],
  [4, 2, 3],
  [1, 5],
  [1, 2, 6, 2, 7],
];
const BYTES = [10, 20, 40, 80];

describe("sandwich", () => {
  test("callers and callees of a frame hold the same bytes", () => {
    const { callers, callees, slots } = sandwich(PATHS, BYTES, 2);
    expect([...slots]).toEqual([0, 1, 3]);
    const own = Array.from(slots, (slot) => BYTES[slot] ?? 0);
    expect(callers.sums(own)[0]).toBe(110);
    expect(callees.sums(own)[0]).toBe(110);
    // 1 calls it with 90, 4 with 20.
    expect([...callers.frame]).toEqual([-3, 2, 1, 4]);
    expect([...callers.sums(own)]).toEqual([110, 110, 90, 20]);
  });

  test("of a recursion the outermost counts, so no byte counts twice", () => {
    const { callees } = sandwich([[1, 2, 6, 2, 7]], [80], 2);
    expect([...callees.frame]).toEqual([-3, 2, 6, 2, 7]);
    expect([...callees.sums([80])]).toEqual([80, 80, 80, 80, 80]);
  });

  test("totals count a stack once for each frame, itself only at the leaf", () => {
    const totals = frameTotals(PATHS, BYTES);
    expect(totals.slice(0, 2)).toEqual([
      { frame: 1, totalBytes: 130, selfBytes: 0 },
      { frame: 2, totalBytes: 110, selfBytes: 0 },
    ]);
    expect(totals.find(({ frame }) => frame === 3)?.selfBytes).toBe(30);
  });
});

describe("difference", () =>
  test("stacks of either side, the largest change first, the rest absent as zero", () => {
    const found = difference(
      { stack: [7, 8, 9], bytes: [100, 50, 5] },
      { stack: [8, 9, 3], bytes: [10, 5, 70] },
    );
    expect([...found.stack]).toEqual([7, 3, 8, 9]);
    expect([...found.before]).toEqual([100, 0, 50, 5]);
    expect([...found.after]).toEqual([0, 70, 10, 5]);
    expect([...found.larger]).toEqual([100, 70, 50, 5]);
  }));
