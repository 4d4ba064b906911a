import { describe, expect, it } from "vitest";
import {
  byteAxis,
  curveTop,
  msAt,
  peakIn,
  rowAt,
  stepPath,
  timeAxis,
  xOf,
  yOf,
  type CurveFrame,
} from "./curve_shape";

const FRAME: CurveFrame = {
  range: { low: 10, high: 20 },
  top: 100,
  widthPx: 1000,
  heightPx: 200,
};
const TIMES = Float64Array.of(8, 12, 14, 25);
const VALUES = Float64Array.of(90, 50, 80, 100);
const CURVE = { timeMs: TIMES, allocatedBytes: VALUES, reservedBytes: VALUES };

describe("places", () =>
  it("go there and back", () => {
    expect(xOf(FRAME, 15)).toBe(500);
    expect(msAt(FRAME, 500)).toBe(15);
    expect([msAt(FRAME, -5), msAt(FRAME, 5000)]).toEqual([10, 20]);
    expect(yOf(FRAME, 25)).toBe(150);
  }));

describe("stepPath", () => {
  it("holds each value until the next, and the last to the edge", () =>
    expect(stepPath(FRAME, Float64Array.of(10, 15), Float64Array.of(0, 100))).toBe(
      "M0.0 200.0H500.0V0.0H1000.0",
    ));

  it("leaves a gap where nothing is known", () => {
    const values = Float64Array.of(100, NaN, 50, NaN);
    expect(stepPath(FRAME, Float64Array.of(10, 12, 14, 16), values)).toBe(
      "M0.0 0.0H200.0M400.0 100.0H600.0",
    );
    expect(stepPath(FRAME, new Float64Array(), new Float64Array())).toBe("");
  });
});

describe("peakIn", () =>
  it("counts what held when the range began, and nothing after its end", () => {
    expect(peakIn(FRAME.range, TIMES, VALUES)).toEqual({ ms: 10, bytes: 90 });
    expect(peakIn({ low: 12, high: 20 }, TIMES, VALUES)).toEqual({ ms: 14, bytes: 80 });
    expect(peakIn({ low: 0, high: 5 }, TIMES, VALUES)).toBeNull();
    expect(peakIn(FRAME.range, TIMES, new Float64Array(4).fill(NaN))).toBeNull();
  }));

describe("rowAt", () =>
  it.each([
    [7, -1],
    [8, 0],
    [13.9, 1],
    [14, 2],
    [99, 3],
  ])("at %d ms stands row %d", (ms, row) => expect(rowAt(CURVE, ms)).toBe(row)));

describe("axes", () => {
  it("reach to a capacity only where the totals come near it", () => {
    expect(curveTop(60, 100)).toBeCloseTo(108);
    expect(curveTop(40, 100)).toBeCloseTo(43.2);
    expect(curveTop(0, null)).toBeGreaterThan(0);
  });

  it("tell neighbouring ticks apart", () => {
    for (const span of [1e-3, 0.07, 3, 900, 8e6]) {
      const range = { low: 12.3456, high: 12.3456 + span };
      const texts = timeAxis({ ...FRAME, range }).map(({ text }) => text);
      expect(texts.length).toBeGreaterThan(1);
      expect(new Set(texts).size).toBe(texts.length);
    }
    const bytes = byteAxis({ ...FRAME, top: 3e9 }, "auto").map(({ text }) => text);
    expect(bytes).toContain("1.00 GiB");
    expect(new Set(bytes).size).toBe(bytes.length);
  });
});
