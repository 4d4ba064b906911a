import { describe, expect, it } from "vitest";
import { highestColumn } from "../plot/bands";
import { stackTable } from "./data_table";
import {
  columnAt,
  columnOfStep,
  columnsWithin,
  layersOf,
  shareOf,
  profiledIn,
  topOf,
} from "./layout";
import { columnWords } from "./tooltip";
import type { StackedSteps } from "./types";

/** Four columns of ten steps; the third was slow, the last was not recorded. */
const STEPS: StackedSteps = {
  x: "step",
  edges: Float64Array.of(99.5, 109.5, 119.5, 129.5, 139.5),
  stepsPerColumn: 10,
  firstStep: Float64Array.of(100, 110, 120, 130),
  shownStep: Float64Array.of(104, 119, 120, 130),
  columnRank: Int32Array.of(3, 3, 7, -1),
  seconds: Float64Array.of(1, 1.5, 40, NaN),
  parts: [
    { name: "forward", seconds: Float64Array.of(0.75, 1, 1, NaN) },
    { name: "checkpoint", seconds: Float64Array.of(NaN, 0, 38, NaN) },
    { name: "other", seconds: Float64Array.of(0.25, 0.5, 1, NaN) },
  ],
  exact: true,
  profilerSteps: [{ first: 117, last: 119, what: "stop" }],
};

const VIEW = { x0: 99.5, x1: 139.5, y0: 50, y1: 0 };

describe("columns", () => {
  it("are marked where the step shown is the profiler's own", () => {
    expect(profiledIn(STEPS, 0)).toBe(null);
    expect(profiledIn(STEPS, 1)).toBe("stop");
  });

  it("are found by x, however wide they are", () => {
    expect(columnAt(STEPS, 99.4)).toBe(-1);
    expect(columnAt(STEPS, 99.5)).toBe(0);
    expect(columnAt(STEPS, 119.4)).toBe(1);
    expect(columnAt(STEPS, 139.5)).toBe(-1);
    const uneven = { edges: Float64Array.of(0, 1, 100, 101) };
    expect([0.5, 1, 99, 100.5].map((x) => columnAt(uneven, x))).toEqual([0, 1, 1, 2]);
    expect(columnAt({ edges: new Float64Array() }, 0)).toBe(-1);
  });

  it("are found by the steps they stand for", () => {
    expect([99, 100, 109, 125, 139, 140].map((s) => columnOfStep(STEPS, s))).toEqual([
      -1, 0, 0, 2, 3, -1,
    ]);
    expect(columnsWithin(STEPS, 109.5, 119.6)).toEqual([1, 2]);
  });

  it("say whose step they show, and among which", () => {
    expect(columnWords(STEPS, 0)).toBe("step 104, the slowest of 100–109");
    expect(columnWords({ ...STEPS, exact: false }, 0)).toBe(
      "the slowest of steps 100–109",
    );
    expect(columnWords({ ...STEPS, stepsPerColumn: 1 }, 1)).toBe("step 119");
  });
});

describe("topOf", () =>
  it("cuts what would flatten everything, unless it is asked for whole", () => {
    const many = {
      ...STEPS,
      edges: Float64Array.from({ length: 101 }, (_, i) => i),
      seconds: Float64Array.from({ length: 100 }, (_, i) => (i === 50 ? 40 : 1)),
    };
    expect(topOf(many, 0, 100, false)).toEqual({ value: 2.5, cut: true });
    expect(topOf(many, 0, 100, true)).toEqual({ value: 40 * 1.08, cut: false });
    expect(topOf(many, 0, 40, false).cut).toBe(false);
    expect(topOf(STEPS, 129.5, 139.5, false).value).toBe(1);
  }));

describe("the stack", () => {
  it("has one layer where no part was recorded", () => {
    const [layer, ...more] = layersOf({ ...STEPS, parts: [] });
    expect(layer?.seconds).toBe(STEPS.seconds);
    expect(more).toEqual([]);
  });

  it("knows shares of what was recorded, and the slowest step", () => {
    const [forward, checkpoint] = STEPS.parts;
    if (forward === undefined || checkpoint === undefined) throw new Error("no parts");
    expect(shareOf(STEPS, forward, 99.5, 119.5)).toBeCloseTo(1.75 / 2.5);
    expect(shareOf(STEPS, checkpoint, 99.5, 109.5)).toBeNaN();
    expect(highestColumn(STEPS.seconds)).toBe(2);
    expect(highestColumn(Float64Array.of(NaN))).toBe(-1);
  });
});

describe("exports", () => {
  it("write every part with its unit; absence is empty", () => {
    const { columns, numRows } = stackTable(STEPS, VIEW);
    expect(numRows).toBe(4);
    expect(columns.map(({ name }) => name)).toEqual([
      "step",
      "rank",
      "step time (seconds)",
      "forward (seconds)",
      "checkpoint (seconds)",
      "other (seconds)",
    ]);
    expect(columns[4]?.values).toEqual([NaN, 0, 38, NaN]);
    expect(stackTable({ ...STEPS, x: "wall" }, VIEW).columns[0]?.name).toBe("wall_ms");
  });
});
