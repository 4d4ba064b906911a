import { describe, expect, it } from "vitest";
import type { StepRate, StepsResponse } from "../../../api/types.gen";
import { domainOf } from "../../../widgets/heatmap/layout";
import { ranksOf } from "../../shared/heat_answers";
import { readState } from "../../shared/page_state";
import { STEPS } from "./params";
import { rateLines } from "./rates";
import { usualStep, wayOf } from "./parts_panel";

const RUN = {
  id: "r",
  name: "run",
  numRanks: 64,
  worldSize: 64,
  numAttempts: 1,
  firstMs: 0,
  lastMs: 0,
  lastStep: 9,
  live: false,
  simulated: false,
  virtualGpu: "",
  imported: false,
  madeOf: "recording",
  deviceType: "cuda",
  numProblems: 0,
} as const;

function rate(
  key: StepRate["key"],
  values: readonly number[],
  summed?: number,
): StepRate {
  return {
    key,
    values: Float64Array.from(values),
    summed: summed === undefined ? new Float64Array() : Float64Array.of(summed, summed),
    median: values[0] ?? null,
    summedMedian: summed ?? null,
    title: "",
    help: "",
    text: "",
    hint: "",
  };
}

const ANSWER: StepsResponse = {
  run: RUN,
  x: "step",
  of: "worst",
  rank: 4,
  xLow: 0,
  xHigh: 7,
  edges: Float64Array.of(-0.5, 3.5, 7.5),
  stepsPerColumn: 4,
  firstStep: Float64Array.of(0, 4),
  shownStep: Float64Array.of(1, 6),
  columnRank: Int32Array.of(4, 9),
  seconds: Float64Array.of(1, 2),
  parts: [],
  grain: "",
  exact: true,
  numRanks: 64,
  numSummed: 64,
  rates: [rate("steps", [5, 6]), rate("tokens", [100, 200], 6400)],
  flops: { origin: "nothing", perStep: null, devicePeak: null, missing: "a and b" },
  profilerSteps: [],
  absent: [],
  memorySeries: null,
  marks: [],
  phases: ["train"],
};

describe("words of the URL", () =>
  it("takes words it knows and nothing else", () => {
    const read = (params: Record<string, string>) =>
      readState(STEPS, new Map(Object.entries(params)));
    expect(read({})).toEqual({
      x: "step",
      phase: "",
      of: "worst",
      rate: null,
      summed: false,
      heat: null,
      step: null,
    });
    expect(
      read({ of: "median", rate: "mfu", heat: "eval", step: "12", summed: "1" }),
    ).toMatchObject({
      of: "median",
      rate: "mfu",
      heat: "eval",
      step: 12,
      summed: true,
    });
    expect(read({ of: "all", step: "-1" })).toMatchObject({
      of: "worst",
      step: null,
    });
    expect(read({ step: "1e3" }).step).toBeNull();
  }));

describe("throughput", () => {
  it("stands in the middle of its column, of a rank or of all", () => {
    const tokens = rate("tokens", [100, 200], 6400);
    const [own] = rateLines(ANSWER, tokens, false);
    expect(Array.from(own?.x ?? [])).toEqual([1.5, 5.5]);
    expect(own?.label).toBe("rank 4");
    const [all] = rateLines(ANSWER, tokens, true);
    expect(all?.label).toBe("all 64 ranks");
    expect(Array.from(all?.y ?? [])).toEqual([6400, 6400]);
    const wall = { ...ANSWER, x: "wall" as const, edges: Float64Array.of(0, 10, 14) };
    expect(Array.from(rateLines(wall, tokens, false)[0]?.x ?? [])).toEqual([5, 12]);
  });

  it("is not added up where that means nothing", () => {
    const steps = rate("steps", [5, 6]);
    expect(rateLines(ANSWER, steps, true)[0]?.label).toBe("rank 4");
  });
});

describe("what a step's time goes to", () => {
  it("leads to what makes the part, where that was recorded", () => {
    expect(wayOf("backward", true)).toBe("operators");
    expect(wayOf("communication", true)).toBe("distributed");
    expect(wayOf("dataloader", true)).toBe("trace");
    expect(wayOf("backward", false)).toBe("trace");
  });

  it("opens a usual step of the rank, never one of the profiler's own", () => {
    const answer = {
      ...ANSWER,
      shownStep: Float64Array.of(0, 1, 2, 3, 4),
      columnRank: Int32Array.of(4, 9, 4, 4, -1),
      seconds: Float64Array.of(1, 2, 3, 9, NaN),
    };
    expect(usualStep(answer, 4)).toBe(2);
    expect(usualStep(answer, 9)).toBe(1);
    expect(usualStep(answer, 77)).toBe(2);
    const profilerSteps = [{ first: 1, last: 2, what: "stop" }] as const;
    expect(usualStep({ ...answer, profilerSteps }, 4)).toBe(3);
    expect(
      usualStep({ ...answer, profilerSteps: [{ first: 0, last: 9, what: "save" }] }, 4),
    ).toBe(null);
  });
});

describe("the map of ranks", () => {
  const cells = {
    run: RUN,
    series: null,
    xLow: 0,
    xHigh: 9,
    x0: 0,
    stepsPerColumn: 1,
    numRows: 2,
    numColumns: 3,
    ranksPerRow: 2,
    rowRank: Int32Array.of(0, 2),
    values: Uint16Array.of(0, 1, 32768, 32768, 32768, 65535),
    valueLow: -10,
    valueHigh: 10,
    capacityBytes: null,
    noise: 0,
    exact: true,
    marks: [],
    absent: [],
  };

  it("knows the ranks of pooled rows", () =>
    expect(Array.from(ranksOf(cells, 3))).toEqual([0, 1, 2]));

  it("has as many shades to both sides, and none for what hardly differs", () => {
    expect(domainOf(cells, true, false)).toEqual({
      low: -10,
      high: 10,
      capacity: false,
      diverging: true,
    });
    const flat = { ...cells, valueLow: -0.1, valueHigh: 0.1 };
    expect(domainOf(flat, true, false)).toMatchObject({ low: -5, high: 5 });
  });
});
