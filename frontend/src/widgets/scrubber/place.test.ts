import { describe, expect, it } from "vitest";
import {
  clampedMoment,
  momentAfterKey,
  momentAt,
  playStep,
  rangeAfterKey,
  rangeBetween,
  wholeRange,
  zoomedRange,
} from "./place";

describe("the scrubber", () => {
  it("keeps what is under the pointer where it is while zooming", () => {
    const zoomed = zoomedRange({ low: 0, high: 1000 }, 250, 0.5, 1000);
    expect(zoomed).toEqual({ low: 125, high: 625 });
    expect(zoomedRange({ low: 125, high: 625 }, 125, 4, 1000)).toBeNull();
    const least = zoomedRange({ low: 10, high: 18 }, 14, 0.1, 1000);
    expect((least?.high ?? 0) - (least?.low ?? 0)).toBe(8);
  });

  it("finds the moment at a place of the axis, and holds it in the history", () => {
    expect([0, 3.9, 10].map((x) => momentAt(x, 10))).toEqual([0, 3, 9]);
    expect(clampedMoment(-8, 10)).toBe(-1);
  });

  it("steps by keys and ignores all others", () => {
    const range = wholeRange(1000);
    const after = (key: string, far = false): number | null =>
      momentAfterKey(key, far, 500, range, 1000);
    expect(after("ArrowRight")).toBe(501);
    expect(after("ArrowLeft", true)).toBe(490);
    expect(after("PageUp")).toBe(550);
    expect(after("Home")).toBe(-1);
    expect(after("End")).toBe(999);
    expect(after("x")).toBeNull();
  });

  it("plays any range in about the same time", () => {
    expect(playStep(wholeRange(100), 20, 10)).toBe(1);
    expect(playStep(wholeRange(1_000_000), 20, 10)).toBe(5000);
  });

  it("chooses whole events of the history, one at least, whichever end comes first", () => {
    expect(rangeBetween(10.4, 20.6, 1000)).toEqual({ low: 10, high: 21 });
    expect(rangeBetween(20.6, 10.4, 1000)).toEqual({ low: 10, high: 21 });
    expect(rangeBetween(7.2, 7.2, 1000)).toEqual({ low: 7, high: 8 });
    expect(rangeBetween(-5, 2000, 1000)).toEqual({ low: 0, high: 1000 });
    expect(rangeBetween(1000, 1000, 1000)).toEqual({ low: 999, high: 1000 });
  });

  it("moves one end of a range by keys, and never past the other", () => {
    const range = { low: 10, high: 21 };
    const after = (key: string, which: "low" | "high", far = false) =>
      rangeAfterKey(key, far, which, range, 1000);
    expect(after("ArrowRight", "low")).toEqual({ low: 11, high: 21 });
    expect(after("ArrowLeft", "high", true)).toEqual({ low: 10, high: 11 });
    expect(after("End", "low")).toEqual({ low: 20, high: 21 });
    expect(after("Home", "low")).toEqual({ low: 0, high: 21 });
    expect(after("Home", "high")).toEqual({ low: 10, high: 11 });
    expect(after("End", "high")).toEqual({ low: 10, high: 1000 });
    expect(after("a", "high")).toBeNull();
  });
});
