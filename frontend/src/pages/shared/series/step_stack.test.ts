import { describe, expect, it } from "vitest";
import { X_AXES } from "../../../model/lines/axis";
import { highestColumn } from "../../../model/lines/peaks";
import { stackTable } from "../../../widgets/stack/stack";
import {
  columnOfStep,
  columnWords,
  profiledIn,
  sharesOf,
  stackOf,
  type StackedSteps,
} from "./step_stack";

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
    {
      name: "forward",
      label: "Forward",
      help: "",
      seconds: Float64Array.of(0.75, 1, 1, NaN),
    },
    {
      name: "checkpoint",
      label: "Checkpoint",
      help: "",
      seconds: Float64Array.of(NaN, 0, 38, NaN),
    },
    {
      name: "other",
      label: "Other",
      help: "",
      seconds: Float64Array.of(0.25, 0.5, 1, NaN),
    },
  ],
  exact: true,
  profilerSteps: [{ first: 117, last: 119, what: "stop" }],
};

describe("columns", () => {
  it("are marked where the step shown is the profiler's own", () => {
    expect(profiledIn(STEPS, 0)).toBe(null);
    expect(profiledIn(STEPS, 1)).toBe("stop");
  });

  it("are found by the steps they stand for", () => {
    expect([99, 100, 109, 125, 139, 140].map((s) => columnOfStep(STEPS, s))).toEqual([
      -1, 0, 0, 2, 3, -1,
    ]);
  });

  it("say whose step they show, and among which", () => {
    expect(columnWords(STEPS, 0)).toBe("step 104, the slowest of 100–109");
    expect(columnWords({ ...STEPS, exact: false }, 0)).toBe(
      "the slowest of steps 100–109",
    );
    expect(columnWords({ ...STEPS, stepsPerColumn: 1 }, 1)).toBe("step 119");
  });
});

describe("the stack", () => {
  it("has one layer where no part was recorded", () => {
    const { layers } = stackOf({ ...STEPS, parts: [] }, "light");
    expect(layers.map(({ values }) => values)).toEqual([STEPS.seconds]);
  });

  it("knows shares of what was recorded, and the slowest step", () => {
    const data = stackOf(STEPS, "light");
    const notes = (low: number, high: number) =>
      sharesOf(data, low, high).layers.map(({ note }) => note);
    expect(notes(99.5, 119.5)).toEqual(["70.0 %", "0.0 %", "30.0 %"]);
    expect(notes(99.5, 109.5)[1]).toBe("–");
    expect(highestColumn(STEPS.seconds)).toBe(2);
    expect(highestColumn(Float64Array.of(NaN))).toBe(-1);
  });

  it("writes every part with its unit", () => {
    const of = (x: "step" | "wall") =>
      stackTable(
        {
          axis: X_AXES[x],
          data: stackOf(STEPS, "light"),
          total: "step time",
          unit: "seconds",
          columns: [{ name: "step", values: STEPS.shownStep }],
        },
        { x0: 99.5, x1: 139.5, y0: 50, y1: 0 },
      );
    const { columns, numRows } = of("step");
    expect(numRows).toBe(4);
    expect(columns.map(({ name }) => name)).toEqual([
      "step",
      "step time (seconds)",
      "forward (seconds)",
      "checkpoint (seconds)",
      "other (seconds)",
    ]);
    expect(columns[3]?.values).toEqual([NaN, 0, 38, NaN]);
    expect(of("wall").columns[0]?.name).toBe("wall_ms");
  });
});
