import { describe, expect, it } from "vitest";
import { MARK_LEVEL, markNear, marksOf, TraceTile } from "./tile";
import {
  LANE_PX,
  laneTop,
  layoutOf,
  stepBeside,
  windowOn,
  within,
} from "../plot/layout";
import { instantWords, readTrace } from "../state/params";
import { BASE, testSlices, testTrace, testTrack } from "../test_trace";
import { hitAt, indexBeside, timeBeside } from "../state/moves";

function tile(high = 1_000, t0 = BASE, tracks = ["a:0"]): TraceTile {
  return new TraceTile(testSlices({ t0: t0.toString() }), BASE, high, new Set(tracks));
}

const HITS = {
  t0: (BASE + 100n).toString(),
  numHits: 3,
  numNames: 2,
  tracks: ["a:0", "spans-0:1"],
  track: Uint16Array.of(0, 1, 1),
  level: Uint16Array.of(2, 0, 0),
  row: Int32Array.of(7, 3, 4),
  isInstant: Uint8Array.of(0, 1, 1),
  startNs: Float64Array.of(0, 50, 50),
  durationNs: Float64Array.of(10, 0, 0),
};

describe("instants of tiles", () => {
  it("are those of a track in order of time", () => {
    const marks = marksOf([tile()], "a:0");
    expect(marks.map(({ timeNs }) => timeNs)).toEqual([5, 200, 800]);
    expect(marks[1]).toMatchObject({ kind: "oom", count: 3, row: 1 });
    expect(marksOf([tile()], "a:1")).toEqual([]);
    expect(marksOf([], "a:0")).toEqual([]);
  });

  it("come from the finer tile where it reaches", () => {
    const coarse = tile();
    // The same three, 100 ns later, up to 500.
    const fine = tile(500, BASE + 100n);
    const times = marksOf([coarse, fine], "a:0").map(({ timeNs }) => timeNs);
    expect(times).toEqual([5, 105, 300, 800, 900]);
    const other = tile(500, BASE + 100n, ["a:1"]);
    expect(marksOf([coarse, other], "a:0")).toHaveLength(3);
  });

  it("are under the pointer within a few pixels", () => {
    const marks = marksOf([tile()], "a:0");
    expect(markNear(marks, 206, 1)?.timeNs).toBe(200);
    expect(markNear(marks, 220, 1)).toBeNull();
    expect(markNear(marks, 520, 100)?.timeNs).toBe(800);
  });
});

describe("the lane of instants", () => {
  const track = testTrack({ numInstants: 3 });
  const layout = layoutOf(testTrace({ tracks: [track] }), new Set());
  const row = layout.byTrack.get("a:0");

  it("lies above the slices", () => {
    const top = laneTop(layout, "a:0", MARK_LEVEL) ?? NaN;
    expect(top).toBe(row?.y);
    expect(laneTop(layout, "a:0", 0)).toBe(top + LANE_PX);
    expect(laneTop(layout, "a:0", 1)).toBe(top + 2 * LANE_PX);
  });

  it("is the only one where there are no slices", () => {
    const alone = testTrack({ numInstants: 3, numSlices: 0, numLevels: 0 });
    const made = layoutOf(testTrace({ tracks: [alone] }), new Set());
    expect(made.byTrack.get("a:0")?.lanes).toBe(0);
    expect(row?.heightPx).toBe((made.byTrack.get("a:0")?.heightPx ?? 0) + 2 * LANE_PX);
  });
});

describe("going from one to the next", () => {
  it("finds what lies after or before a time", () => {
    const times = [10, 20, 20, 30];
    expect(timeBeside(times, 20, 1)).toBe(3);
    expect(timeBeside(times, 20, -1)).toBe(0);
    expect(timeBeside(times, 30, 1)).toBeNull();
    expect(timeBeside(times, 10, -1)).toBeNull();
    expect(timeBeside([], 0, 1)).toBeNull();
  });

  it("passes none that has the same time", () => {
    expect(indexBeside(HITS, { track: "spans-0:1", row: 3 }, 1)).toBe(2);
    expect(indexBeside(HITS, { track: "spans-0:1", row: 4 }, 1)).toBeNull();
    expect(indexBeside(HITS, { track: "a:0", row: 3 }, 1)).toBeNull();
  });

  it("knows what a hit is, and where", () => {
    expect(hitAt(HITS, 0, BASE)).toEqual({
      place: { trackKey: "a:0", level: 2, startNs: 100, endNs: 110 },
      ref: { source: "a", row: 7 },
      isInstant: false,
    });
    expect(hitAt(HITS, 1, BASE)).toMatchObject({
      place: { trackKey: "spans-0:1", level: MARK_LEVEL, startNs: 150 },
      ref: { source: "spans-0", row: 3 },
      isInstant: true,
    });
  });

  it("stands in the URL in place of a slice", () => {
    const words = instantWords({ source: "spans-0", row: 3 });
    expect(words).toMatchObject({ instant: "spans-0:3", slice: null, r0: null });
    const read = readTrace(new Map([["instant", "spans-0:3"]]));
    expect(read.instant).toEqual({ source: "spans-0", row: 3 });
    expect(instantWords(null)["instant"]).toBeNull();
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
    const at = { trackKey: "a:0", level: MARK_LEVEL, startNs: 5_000, endNs: 5_000 };
    expect(windowOn(at, now)).toEqual({ low: 4_500, high: 5_500 });
    expect(windowOn({ ...at, startNs: 500, endNs: 500 }, now)).toBeNull();
  });

  it("go from step to step", () => {
    const { steps } = testTrace();
    expect(stepBeside(steps, 100, 1)?.low).toBeCloseTo(500 - 0.08 * 490);
    expect(stepBeside(steps, 600, -1)?.high).toBeCloseTo(480 + 0.08 * 480);
    expect(stepBeside(steps, 600, 1)).toBeNull();
  });
});
