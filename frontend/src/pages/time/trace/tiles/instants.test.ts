import { describe, expect, it } from "vitest";
import { markNear, marksOf, TraceTile } from "./tile";
import {
  LANE_PX,
  laneTop,
  layoutOf,
  stepBeside,
  windowOn,
  within,
} from "../plot/layout";
import { SLICE_WORD } from "../state/params";
import { BASE, testSlices, testTrace, testTrack } from "../test_trace";
import { hitBeside, hitOf, hitsOf } from "../state/selection";

function tile(high = 1_000, t0 = BASE, tracks = ["a:0"]): TraceTile {
  return new TraceTile(testSlices({ t0: t0.toString() }), BASE, high, new Set(tracks));
}

const HITS = {
  t0: (BASE + 100n).toString(),
  numHits: 3,
  numNames: 2,
  tracks: ["a:0", "spans-0:1"],
  track: Uint16Array.of(0, 1, 1),
  level: Int32Array.of(2, -1, -1),
  row: Int32Array.of(7, -4, -5),
  startNs: Float64Array.of(0, 50, 50),
  durationNs: Float64Array.of(10, 0, 0),
};

describe("instants of tiles", () => {
  it("are those of a track in order of time", () => {
    const marks = marksOf([tile()], "a:0");
    expect(marks.map(({ startNs }) => startNs)).toEqual([10, 200, 800]);
    expect(marks[1]).toMatchObject({ family: "oom", count: 3, row: -2 });
    expect(marksOf([tile()], "a:1")).toEqual([]);
    expect(marksOf([], "a:0")).toEqual([]);
  });

  it("come from the finer tile where it reaches", () => {
    const coarse = tile();
    // The same three, 100 ns later, up to 500.
    const fine = tile(500, BASE + 100n);
    const times = marksOf([coarse, fine], "a:0").map(({ startNs }) => startNs);
    expect(times).toEqual([10, 110, 300, 800, 900]);
    const other = tile(500, BASE + 100n, ["a:1"]);
    expect(marksOf([coarse, other], "a:0")).toHaveLength(3);
  });

  it("are under the pointer within a few pixels", () => {
    const marks = marksOf([tile()], "a:0");
    expect(markNear(marks, 206, 1)?.startNs).toBe(200);
    expect(markNear(marks, 220, 1)).toBeNull();
    expect(markNear(marks, 520, 100)?.startNs).toBe(800);
  });
});

describe("the lane of instants", () => {
  const track = testTrack("a:0", { numInstants: 3 });
  const layout = layoutOf(testTrace({ tracks: [track] }), "");
  const row = layout.byTrack.get("a:0");

  it("lies above the slices", () => {
    const top = laneTop(layout, "a:0", -1) ?? NaN;
    expect(top).toBe(row?.y);
    expect(laneTop(layout, "a:0", 0)).toBe(top + LANE_PX);
    expect(laneTop(layout, "a:0", 1)).toBe(top + 2 * LANE_PX);
  });

  it("is the only one where there are no slices", () => {
    const alone = testTrack("a:0", { numInstants: 3, numSlices: 0, numLevels: 0 });
    const made = layoutOf(testTrace({ tracks: [alone] }), "");
    expect(made.byTrack.get("a:0")?.lanes).toBe(0);
    expect(row?.heightPx).toBe((made.byTrack.get("a:0")?.heightPx ?? 0) + 2 * LANE_PX);
  });
});

describe("going from one to the next", () => {
  const hits = hitsOf(HITS, BASE);

  it("passes none that has the same time, and goes round", () => {
    const instant = (row: number) => ({ source: "spans-0", row });
    expect(hitBeside(hits, instant(-4), 0, 1)).toBe(hits[2]);
    expect(hitBeside(hits, instant(-5), 0, 1)).toBe(hits[0]);
    expect(hitOf(hits, { source: "a", row: -4 })).toBe(-1);
    expect(hitBeside(hits, null, 120, 1)).toBe(hits[1]);
    expect(hitBeside(hits, null, 120, -1)).toBe(hits[0]);
    expect(hitBeside(hits, null, 100, -1)).toBe(hits[2]);
    expect(hitBeside([], null, 0, 1)).toBeUndefined();
  });

  it("knows what a hit is, and where", () => {
    expect(hits[0]).toEqual({
      place: { trackKey: "a:0", level: 2, startNs: 100, endNs: 110 },
      ref: { source: "a", row: 7 },
    });
    expect(hits[1]).toMatchObject({
      place: { trackKey: "spans-0:1", level: -1, startNs: 150 },
      ref: { source: "spans-0", row: -4 },
    });
  });

  it("stands in the URL as a slice does", () => {
    const slice = { source: "spans-0", row: -4 };
    expect(SLICE_WORD.write(slice)).toEqual({ slice: "spans-0:-4" });
    expect(SLICE_WORD.read(new Map([["slice", "spans-0:-4"]]))).toEqual(slice);
    expect(SLICE_WORD.read(new Map([["slice", "../etc:3"]]))).toBeNull();
  });
});

describe("windows", () => {
  const now = { low: 0, high: 1_000 };

  it("stay within what there is, as wide as they were", () => {
    expect(within({ low: -200, high: 300 }, now)).toEqual({ low: 0, high: 500 });
    expect(within({ low: -200, high: 3_000 }, now)).toEqual(now);
    expect(within({ low: 500, high: 501 }, now)).toEqual({ low: 495.5, high: 505.5 });
  });

  it("move only for what cannot be seen", () => {
    const place = { trackKey: "a:0", level: 0, startNs: 100, endNs: 300 };
    expect(windowOn(place, now)).toBeNull();
    expect(windowOn(place, { low: 150, high: 250 })).toEqual({ low: 50, high: 350 });
    // A slice too small for its pixel is made 1/40 of the window.
    const tiny = { ...place, endNs: 101 };
    expect(windowOn(tiny, { low: 0, high: 100_000 })).toEqual({
      low: 80.5,
      high: 120.5,
    });
  });

  it("only pan to an instant", () => {
    const place = { trackKey: "a:0", level: -1, startNs: 5_000, endNs: 5_000 };
    expect(windowOn(place, now)).toEqual({ low: 4_500, high: 5_500 });
    expect(windowOn({ ...place, startNs: 500, endNs: 500 }, now)).toBeNull();
  });

  it("go from step to step", () => {
    const { steps } = testTrace();
    expect(stepBeside(steps, 100, 1)?.low).toBeCloseTo(500 - 0.08 * 490);
    expect(stepBeside(steps, 600, -1)?.high).toBeCloseTo(480 + 0.08 * 480);
    expect(stepBeside(steps, 600, 1)).toBeNull();
  });
});
