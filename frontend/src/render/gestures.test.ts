import { describe, expect, it } from "vitest";
import { boxOf, viewAfterKey, wheelFactor } from "./gestures";

const WORLD = { x0: 0, x1: 1000, y0: 0, y1: 100 };
const LIMITS = { world: WORLD, leastX: 1, leastY: 1 };
const VIEW = { x0: 400, x1: 600, y0: 40, y1: 60 };

describe("viewAfterKey", () => {
  it("zooms with W and S, which undo each other", () => {
    const closer = viewAfterKey("w", VIEW, LIMITS, "x");
    expect(closer).toEqual({ x0: 420, x1: 580, y0: 40, y1: 60 });
    const back = viewAfterKey("S", closer ?? VIEW, LIMITS, "x");
    expect(back?.x0).toBeCloseTo(400, 9);
    expect(back?.x1).toBeCloseTo(600, 9);
  });

  it("pans with A and D by the same share of what is shown", () => {
    expect(viewAfterKey("a", VIEW, LIMITS, "both")?.x0).toBeCloseTo(370, 9);
    expect(viewAfterKey("d", VIEW, LIMITS, "both")?.x0).toBeCloseTo(430, 9);
  });

  it("leaves every other key to others", () => {
    expect(viewAfterKey("f", VIEW, LIMITS, "both")).toBeNull();
    expect(viewAfterKey("1", VIEW, LIMITS, "both")).toBeNull();
  });
});

describe("wheelFactor", () =>
  it("is symmetric, bounded, and alike for lines and pixels", () => {
    expect(wheelFactor(50, 0) * wheelFactor(-50, 0)).toBeCloseTo(1, 12);
    expect(wheelFactor(1e6, 0)).toBe(wheelFactor(240, 0));
    expect(wheelFactor(3, 1)).toBeCloseTo(wheelFactor(99, 0), 12);
    expect(wheelFactor(-10, 0)).toBeLessThan(1);
  }));

describe("boxOf", () =>
  it("is the same whichever corner came first, and stays inside the plot", () => {
    const size = { widthPx: 100, heightPx: 50 };
    const box = boxOf({ x: 80, y: 40 }, { x: -20, y: 10 }, size);
    expect(box).toEqual({ x: 0, y: 10, width: 80, height: 30 });
    expect(boxOf({ x: -20, y: 10 }, { x: 80, y: 40 }, size)).toEqual(box);
  }));
