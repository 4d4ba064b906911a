import { describe, expect, it } from "vitest";
import { localPeaks, nextPeak } from "./peaks";

function peaks(...y: readonly number[]): readonly number[] {
  return localPeaks({
    x: Float64Array.from(y, (_, i) => i),
    y: Float64Array.from(y),
  });
}

describe("localPeaks", () => {
  it("finds every peak that stands out on both sides", () =>
    expect(peaks(0, 10, 0, 8, 0, 10, 2)).toEqual([1, 3, 5]));

  it("passes over ripples and gaps", () =>
    expect(peaks(0, 10, 9.9, 10, 9.8, NaN, 0, 5, NaN, 0)).toEqual([1, 7]));

  it("counts ends that are higher than what is beside them", () => {
    expect(peaks(10, 0, 10)).toEqual([0, 2]);
    expect(peaks(0, 1, 2, 3)).toEqual([3]);
    expect(peaks(3, 2, 1, 0)).toEqual([0]);
  });

  it("finds none where nothing moves or nothing was recorded", () => {
    expect(peaks(5, 5, 5)).toEqual([]);
    expect(peaks(NaN, NaN)).toEqual([]);
    expect(peaks()).toEqual([]);
  });
});

describe("nextPeak", () =>
  it("steps to either side and stops at the ends", () => {
    expect(nextPeak([1, 3, 5], 3, 1)).toBe(5);
    expect(nextPeak([1, 3, 5], 3, -1)).toBe(1);
    expect(nextPeak([1, 3, 5], 5, 1)).toBeNull();
    expect(nextPeak([1, 3, 5], 0.5, -1)).toBeNull();
  }));
