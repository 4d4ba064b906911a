import { describe, expect, it } from "vitest";
import type { HeatmapResponse } from "../../api/types.gen";
import {
  defaultsToCapacity,
  domainOf,
  factsOf,
  layerOf,
  needOf,
  worldOf,
} from "./layout";
import { cellReading, cellTable, summaryTable, type Pooling } from "./text";

const GIB = 2 ** 30;
const PLAIN = {
  unit: "seconds",
  byteUnit: "auto",
  capacityBytes: null,
  diverging: false,
  pooled: "highest",
} as const;
/** Ranks are not contiguous: some are filtered out. */
const RANKS = Int32Array.of(0, 1, 2, 3, 64, 65, 66, 67);

const ANSWER: HeatmapResponse = {
  run: {
    id: "r",
    name: "r",
    numRanks: 8,
    worldSize: 128,
    numAttempts: 1,
    firstMs: 0,
    lastMs: 0,
    lastStep: 99,
    live: false,
    simulated: false,
    virtualGpu: "",
    deviceType: "cuda",
    numProblems: 0,
    imported: false,
    madeOf: "recording",
  },
  series: null,
  xLow: 0,
  xHigh: 99,
  x0: 40,
  stepsPerColumn: 10,
  numRows: 2,
  numColumns: 3,
  ranksPerRow: 2,
  rowRank: Int32Array.of(2, 64),
  values: Uint16Array.of(1, 0, 65535, 0, 32768, 0),
  valueLow: 0,
  valueHigh: 80 * GIB,
  capacityBytes: 80 * GIB,
  noise: 0,
  exact: true,
  marks: [],
  absent: [],
};

describe("layerOf", () =>
  it("puts rows at their place among the ranks drawn, and cells around their steps", () => {
    expect(layerOf(ANSWER, RANKS)).toMatchObject({
      grid: { x0: 39.5, columnWidth: 10, y0: 2, rowHeight: 2 },
    });
  }));

describe("factsOf", () => {
  it("names steps, ranks and value of the cell, over gaps in the ranks", () => {
    const facts = factsOf(ANSWER, RANKS, 2);
    expect(facts).toMatchObject({
      value: 80 * GIB,
      firstStep: 60,
      lastStep: 69,
      firstRank: 2,
      lastRank: 3,
    });
    expect(facts.tolerance).toBeLessThan((80 * GIB) / 1e5);
  });

  it("says when nothing was recorded", () => {
    const facts = factsOf(ANSWER, RANKS, 1);
    expect(facts.value).toBeNaN();
    expect(cellReading(facts, { ...PLAIN, unit: "bytes" })).toEqual({
      title: "not recorded",
      notes: ["highest of ranks 2–3", "highest of steps 50–59"],
    });
  });
});

describe("the words of a cell", () => {
  const facts = {
    value: 0.0123456,
    tolerance: 1e-8,
    firstStep: 4,
    lastStep: 4,
    firstRank: 4,
    lastRank: 7,
  };

  it("keep the digits of seconds, and round what has no parts", () => {
    const { title, notes } = cellReading(facts, PLAIN);
    expect(title).toBe("12.3 ms");
    expect(notes?.[0]).toMatchObject({ text: "0.0123456 s ± 0.01 µs" });
    const bytes = { ...facts, value: 1023.6 };
    const of = { ...PLAIN, unit: "bytes", capacityBytes: 2047.2 } as const;
    const [share, exact] = cellReading(bytes, of).notes ?? [];
    expect(share).toBe("50.0 % of the capacity");
    expect(typeof exact === "string" ? "" : exact?.text).toMatch(/^1,024 bytes/);
  });

  it("say which of several ranks is shown", () => {
    const rank = (pooled: Pooling) =>
      cellReading(facts, { ...PLAIN, pooled }).notes?.[1];
    expect(rank("highest")).toBe("highest of ranks 4–7");
    expect(rank("farthest")).toBe("farthest from the median rank of ranks 4–7");
  });
});

describe("needOf", () => {
  const size = { widthPx: 800, heightPx: 400 };
  const world = worldOf(ANSWER, RANKS.length);

  it("asks for nothing special while everything is in sight", () => {
    expect(needOf(world, world, RANKS, size)).toEqual({
      steps: null,
      ranks: null,
      px: 800,
      rows: 400,
    });
  });

  it("names every rank that is partly in sight", () => {
    const view = { x0: 20.2, x1: 30.7, y0: 3.5, y1: 4.2 };
    expect(needOf(view, world, RANKS, size)).toMatchObject({
      steps: { low: 20, high: 31 },
      ranks: "3,64",
    });
  });
});

describe("domainOf", () =>
  it("means the capacity unless the data would look flat in it", () => {
    expect(defaultsToCapacity(ANSWER)).toBe(true);
    const idle = { ...ANSWER, valueLow: GIB, valueHigh: 2 * GIB };
    expect(defaultsToCapacity(idle)).toBe(false);
    expect(domainOf(idle, false, false)).toEqual({
      low: GIB,
      high: 2 * GIB,
      capacity: false,
      diverging: false,
    });
    expect(domainOf(idle, false, true)).toEqual({
      low: 0,
      high: 80 * GIB,
      capacity: true,
      diverging: false,
    });
    expect(domainOf({ ...idle, capacityBytes: null }, false, true).capacity).toBe(
      false,
    );
    const even = {
      ...idle,
      series: {
        key: "step_time_seconds",
        label: "Step time",
        unit: "seconds" as const,
        group: "timing" as const,
        headline: true,
        isFlat: false,
        numRanks: 2,
      },
      valueLow: 0.0979,
      valueHigh: 0.0987,
      noise: 0.002,
    };
    // Noise takes a twelfth of the colours; what differs takes all.
    expect(domainOf(even, false, false).high).toBeCloseTo(0.0979 + 0.024);
    expect(domainOf({ ...even, valueHigh: 0.15 }, false, false).high).toBe(0.15);
  }));

describe("tables", () =>
  it("keep absence empty and find each row's peak", () => {
    const cells = cellTable(ANSWER);
    expect(cells.columns.map((column) => column.name)).toEqual([
      "first rank",
      "step 40",
      "step 50",
      "step 60",
    ]);
    expect(cells.columns[2]?.values[0]).toBeNaN();
    const summary = summaryTable(ANSWER, "bytes");
    expect(summary.columns[1]?.values[0]).toBe(80 * GIB);
    // Quantised to 65,534 steps of 1.25 MiB.
    expect(Math.abs(Number(summary.columns[1]?.values[1]) - 40 * GIB)).toBeLessThan(
      2 ** 21,
    );
    expect(summary.columns[2]?.values).toEqual(Float64Array.of(60, 50));
    const seconds = summaryTable({ ...ANSWER, valueHigh: 0.5 }, "seconds");
    expect(seconds.columns[1]?.values[1]).toBeCloseTo(0.25, 4);
  }));
