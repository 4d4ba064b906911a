import { describe, expect, it } from "vitest";
import type {
  HeatmapResponse,
  RankLine,
  RunSummary,
  TimelineResponse,
} from "../../api/types.gen";
import {
  chartLines,
  chosenMark,
  firstOom,
  nextSlots,
  peakOf,
  rankOfId,
} from "../shared/series/lines";
import { askedRange } from "../shared/range/params";
import { covers } from "../shared/range/use_two_answers";
import { readState } from "../shared/page_state";
import { TIMELINE } from "../shared/series/params";
import { rankNearest } from "../shared/heat_answers";
import { drawnRanks } from "../shared/series/rank_map";

describe("words of the URL", () =>
  it("survive whatever stands in a link", () => {
    const hostile = new Map([
      ["x", "<b>"],
      ["smooth", "7"],
      ["log", "yes"],
    ]);
    expect(readState(TIMELINE, hostile)).toEqual({
      series: "",
      x: "step",
      phase: "",
      smoothing: 0.99,
      logScale: false,
      map: null,
      step: null,
    });
  }));

describe("askedRange", () =>
  it("asks for more than is shown, so that small pans are covered", () => {
    const asked = askedRange({ low: 100, high: 200 });
    expect(covers(asked, { low: 60, high: 160 })).toBe(true);
    expect(covers(asked, { low: 40, high: 140 })).toBe(false);
    expect(covers(asked, null)).toBe(false);
    expect(covers(null, { low: 0, high: 1 })).toBe(true);
  }));

function rankLine(rank: number, why: RankLine["why"], y: readonly number[]): RankLine {
  const column = Float64Array.from(y);
  const x = Float64Array.from(y, (_, i) => i);
  return { rank, why, x, y: column, yLow: Float64Array.from(column) };
}

describe("chartLines", () => {
  it("keeps lines over a band off its blue, and apart from each other", () => {
    const ranks = Array.from({ length: 12 }, (_, i) => i);
    const slots = new Map(ranks.map((rank) => [`rank ${rank}`, rank]));
    const lines = chartLines(
      ranks.map((rank) => rankLine(rank, "high", [1])),
      slots,
      true,
    );
    const blues = [0, 4];
    expect(lines.filter((line) => blues.includes(Number(line.colour) % 8))).toEqual([]);
    expect(new Set(lines.map((line) => line.colour)).size).toBe(12);
  });

  it("keeps a rank's colour when others come and go", () => {
    const first = nextSlots(
      [rankLine(3, "high", [1]), rankLine(8, "low", [1])],
      new Map(),
    );
    const second = nextSlots(
      [rankLine(1, "pinned", [1]), rankLine(8, "low", [1])],
      first,
    );
    const colour = (slots: ReadonlyMap<string, number>, rank: number) =>
      chartLines([rankLine(rank, "high", [1])], slots)[0]?.colour;
    expect(colour(second, 8)).toBe(colour(first, 8));
    expect(colour(second, 1)).not.toBe(colour(second, 8));
  });

  it("sees that nothing was merged, absence included", () => {
    const [flat] = chartLines([rankLine(0, "selected", [1, NaN, 3])], new Map());
    expect(flat?.yLow).toBe(flat?.y);
    const merged = { ...rankLine(0, "selected", [5, 5]), yLow: Float64Array.of(5, 4) };
    expect(chartLines([merged], new Map())[0]?.yLow).toBe(merged.yLow);
    expect(rankOfId(flat?.id ?? "")).toBe(0);
  });
});

const RUN: RunSummary = {
  id: "r",
  name: "r",
  numRanks: 32,
  worldSize: 32,
  numAttempts: 1,
  firstMs: 0,
  lastMs: 0,
  lastStep: 3,
  live: false,
  simulated: false,
  virtualGpu: "",
  deviceType: "cuda",
  numProblems: 0,
  imported: false,
  madeOf: "recording",
};

function timeline(more: Partial<TimelineResponse>): TimelineResponse {
  return {
    run: RUN,
    series: {
      key: "step/a_bytes",
      label: "A",
      unit: "bytes",
      group: "device",
      headline: true,
      numRanks: 4,
      isFlat: false,
    },
    x: "step",
    xLow: 0,
    xHigh: 3,
    rowsPerPoint: 1,
    lines: [],
    band: null,
    capacityBytes: null,
    capacityKind: "none",
    marks: [],
    available: [],
    absent: [],
    phases: [],
    problems: [],
    ...more,
  };
}

describe("peakOf", () =>
  it("names the rank that holds the peak, in bands as in lines", () => {
    const column = (...values: number[]): Float64Array => Float64Array.from(values);
    const band = {
      numRanks: 32,
      x: column(0, 1, 2),
      low: column(1, 1, 1),
      p5: column(1, 1, 1),
      median: column(1, 1, 1),
      p95: column(1, 1, 1),
      high: column(4, 90, NaN),
      highRank: Int32Array.of(7, 13, 2),
    };
    expect(peakOf(timeline({ band }))).toEqual({ x: 1, value: 90, rank: 13 });
    const lines = [rankLine(5, "pinned", [1, 2, 95])];
    expect(peakOf(timeline({ band, lines }))).toEqual({ x: 2, value: 95, rank: 5 });
    expect(peakOf(timeline({ lines: [rankLine(0, "selected", [NaN])] }))).toBeNull();
  }));

describe("marks", () => {
  const oom = (x: number) => ({ kind: "oom", x, rank: 41, label: "" }) as const;

  it("say who ran out of memory first", () => {
    expect(firstOom(timeline({ marks: [oom(134), oom(130)] }))?.x).toBe(130);
    expect(firstOom(timeline({}))).toBeNull();
  });

  it("show the step chosen for all pages where it is one of these", () => {
    expect(chosenMark(2, timeline({}))).toMatchObject([{ x: 2, rank: null }]);
    expect(chosenMark(4, timeline({}))).toEqual([]);
    expect(chosenMark(2, timeline({ x: "wall" }))).toEqual([]);
  });
});

describe("drawnRanks", () => {
  it("narrows to ranks that exist, and ignores what it cannot read", () => {
    const ranks = Int32Array.of(0, 1, 2, 64);
    expect([...drawnRanks(ranks, "1-70")]).toEqual([1, 2, 64]);
    expect(drawnRanks(ranks, "oops")).toBe(ranks);
    expect(drawnRanks(ranks, "")).toBe(ranks);
  });
});

const HEATMAP: HeatmapResponse = {
  run: RUN,
  series: null,
  xLow: 0,
  xHigh: 1,
  x0: 0,
  stepsPerColumn: 1,
  numRows: 3,
  numColumns: 0,
  ranksPerRow: 4,
  rowRank: Int32Array.of(0, 4, 8),
  values: new Uint16Array(),
  valueLow: 0,
  valueHigh: 1,
  capacityBytes: null,
  noise: 0,
  exact: true,
  marks: [],
  absent: [],
};

describe("rankNearest", () =>
  it("names the row of the nearest cell, and nothing where all is absent", () => {
    const values = Uint16Array.of(1, 20_000, 3, 60_000, 0, 50_000);
    const nearest = (of: Uint16Array, value: number) =>
      rankNearest({ ...HEATMAP, numColumns: 2, values: of }, value);
    expect(nearest(values, 0.9)).toBe(4);
    expect(nearest(values, 0.3)).toBe(HEATMAP.rowRank[0]);
    expect(nearest(new Uint16Array(6), 0.9)).toBeNull();
  }));
