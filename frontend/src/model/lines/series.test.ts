import { describe, expect, it } from "vitest";
import type { RankLine } from "../../api/types.gen";
import { nextSlots } from "../../pages/shared/series/lines";
import { smooth } from "../../widgets/line_chart/frame";

function ranks(...all: readonly number[]): readonly RankLine[] {
  return all.map((rank) => ({ rank }) as unknown as RankLine);
}

describe("nextSlots", () => {
  it("keeps what was given and spreads the rest", () => {
    const first = nextSlots(ranks(0, 1, 2), new Map());
    expect(new Set(first.values()).size).toBe(3);
    const second = nextSlots(ranks(3, 2, 0), first);
    expect(second.get("rank 0")).toBe(first.get("rank 0"));
    expect(second.get("rank 2")).toBe(first.get("rank 2"));
    expect(new Set(second.values()).size).toBe(3);
  });

  it("reuses slots evenly when there are more lines than slots", () => {
    const slots = [...nextSlots(ranks(...Array(32).keys()), new Map()).values()];
    const counts = slots.map((slot) => slots.filter((other) => other === slot).length);
    expect(new Set(counts)).toEqual(new Set([2]));
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
