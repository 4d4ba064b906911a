import { describe, expect, it } from "vitest";
import { assignSlots } from "../../pages/shared/rank_lines";
import { smooth } from "../../widgets/line_chart/shapes";

describe("assignSlots", () => {
  it("keeps what was given and spreads the rest", () => {
    const first = assignSlots(["a", "b", "c"], new Map(), 4);
    expect(new Set(first.values()).size).toBe(3);
    const second = assignSlots(["d", "c", "a"], first, 4);
    expect(second.get("a")).toBe(first.get("a"));
    expect(second.get("c")).toBe(first.get("c"));
    expect(new Set(second.values()).size).toBe(3);
  });

  it("reuses slots evenly when there are more ids than slots", () => {
    const slots = assignSlots(["a", "b", "c", "d", "e", "f"], new Map(), 3);
    const counts = [0, 1, 2].map(
      (s) => [...slots.values()].filter((v) => v === s).length,
    );
    expect(counts).toEqual([2, 2, 2]);
  });
});

describe("smooth", () => {
  it("leaves a constant alone from its first point on", () => {
    const out = smooth(new Float64Array(50).fill(7), 0.9);
    for (const value of out) expect(value).toBeCloseTo(7, 12);
  });

  it("keeps gaps as gaps and stays within the data", () => {
    const out = smooth(Float64Array.of(1, NaN, 3, 100), 0.5);
    expect(out[1]).toBeNaN();
    expect(out[3]).toBeGreaterThan(3);
    expect(out[3]).toBeLessThan(100);
  });

  it("is the data itself when off", () => {
    const y = Float64Array.of(1, 2, 3);
    expect(smooth(y, 0)).toBe(y);
  });
});
