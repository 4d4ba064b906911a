import { describe, expect, it } from "vitest";
import {
  area,
  lowerBound,
  nearestIndex,
  polyline,
  valueRange,
  visibleRange,
} from "./polyline";

const same = (value: number): number => value;

describe("polyline", () => {
  it("keeps the highest and lowest point of a million in at most four per column", () => {
    const num = 1_000_000;
    const x = Float64Array.from({ length: num }, (_, i) => i);
    const y = Float64Array.from({ length: num }, (_, i) => Math.sin(i));
    y[654_321] = 99;
    y[123_456] = -77;
    const runs = polyline(x, y, 0, num, (v) => v / 1000, same);
    expect(runs.length).toBe(1);
    const points = runs[0] ?? new Float64Array();
    expect(points.length / 2).toBeLessThanOrEqual(4 * 1001);
    const ys = points.filter((_, i) => i % 2 === 1);
    expect(Math.max(...ys)).toBe(99);
    expect(Math.min(...ys)).toBe(-77);
    const xs = points.filter((_, i) => i % 2 === 0);
    expect(xs.every((value, i) => i === 0 || value >= (xs[i - 1] ?? 0))).toBe(true);
  });

  it("breaks at absent values and never draws zero for them", () => {
    const x = Float64Array.of(0, 10, 20, 30, 40);
    const y = Float64Array.of(5, 6, NaN, 7, 8);
    const runs = polyline(x, y, 0, 40, same, same);
    expect(runs.map((run) => [...run])).toEqual([
      [0, 5, 10, 6],
      [30, 7, 40, 8],
    ]);
  });

  it("drops what a logarithmic axis cannot show", () => {
    const x = Float64Array.of(0, 10, 20);
    const runs = polyline(x, Float64Array.of(10, 0, 1000), 0, 20, same, Math.log10);
    expect(runs.map((run) => [...run])).toEqual([
      [0, 1],
      [20, 3],
    ]);
  });

  it("keeps one point outside each edge, so that lines reach it", () => {
    const x = Float64Array.of(0, 10, 20, 30, 40, 50);
    expect(visibleRange(x, 15, 25)).toEqual([1, 4]);
    expect(visibleRange(x, -5, 500)).toEqual([0, 6]);
    expect(visibleRange(new Float64Array(), 0, 1)).toEqual([0, 0]);
  });
});

describe("area", () =>
  it("closes one outline per unbroken run", () => {
    const x = Float64Array.of(0, 10, 20, 30);
    const outlines = area(
      x,
      Float64Array.of(1, 1, NaN, 1),
      Float64Array.of(2, 3, 3, 2),
      0,
      30,
      same,
      same,
    );
    expect(outlines.map((o) => [...o])).toEqual([
      [0, 2, 10, 3, 10, 1, 0, 1],
      [30, 2, 30, 1],
    ]);
  }));

describe("nearestIndex", () =>
  it("agrees with a search of every point", () => {
    const x = Float64Array.of(1, 2, 2, 7, 11, 30);
    for (let target = -3; target < 40; target += 0.7) {
      const distance = Math.min(...[...x].map((v) => Math.abs(v - target)));
      expect(Math.abs((x[nearestIndex(x, target)] ?? NaN) - target)).toBeCloseTo(
        distance,
        12,
      );
    }
    expect(nearestIndex(new Float64Array(), 3)).toBe(-1);
    expect(lowerBound(x, 2)).toBe(1);
  }));

describe("valueRange", () =>
  it("ignores absence and infinities, and says when nothing is there", () => {
    const x = Float64Array.of(0, 1, 2, 3);
    const y = Float64Array.of(NaN, 4, Infinity, 2);
    expect(valueRange(x, [y], 0, 3)).toEqual([2, 4]);
    expect(valueRange(x, [Float64Array.of(NaN, NaN, NaN, NaN)], 0, 3)).toBeNull();
  }));
