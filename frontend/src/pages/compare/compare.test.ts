import { describe, expect, it } from "vitest";
import type {
  CompareResponse,
  CompareRunsResponse,
  CompareSide,
  CompareTable,
  HistoriesResponse,
  HistoryDevice,
  RunSummary,
} from "../../api/types.gen";
import { sortedRows } from "../../model/shown_rows";
import { SvgPen } from "../../widgets/export/pen";
import { tableOf } from "../../widgets/row_table/columns";
import { readState, writeState } from "../shared/page_state";
import { bytesAt, curveOf, fillsOf } from "./charts/overlay_part";
import { paintWaterfall, partsOf, usualPart, waterfallSteps } from "./charts/waterfall";
import { differenceColumns, wantedRows, onlySide } from "./difference_rows";
import { changePercent, differenceTable, percentText } from "./difference_table";
import { COMPARE } from "./params";
import { comparedBy } from "./rows";
import { historyOfA, namedMoments, runBefore } from "./sides";

const GIB = 2 ** 30;

function side(words: string): CompareSide {
  return { words, moment: { moment: 3 } } as unknown as CompareSide;
}

/** Two stacks of both sides, one that only A has and one that only B has. */
const ANSWER: CompareResponse = {
  a: side("event 3"),
  b: side("event 9"),
  sentence: "B holds 2.00 GiB more than A (+33.3 %).",
  figures: [
    { label: "Live", hint: "", note: "", unit: "bytes", a: 6 * GIB, b: 8 * GIB },
  ],
  categories: ["param", "activation"],
  tables: [
    {
      by: "category",
      labels: ["activation", "param"],
      aBytes: Float64Array.of(1 * GIB, 5 * GIB),
      bBytes: Float64Array.of(3 * GIB, 5 * GIB),
      aBlocks: Int32Array.of(1, 5),
      bBlocks: Int32Array.of(3, 5),
    },
    {
      by: "size",
      labels: ["2 MiB to 4 MiB"],
      aBytes: Float64Array.of(1),
      bBytes: Float64Array.of(2),
      aBlocks: Int32Array.of(1),
      bBlocks: Int32Array.of(1),
    },
  ],
  stacks: {
    strings: ["forward", "/me/model.py", "main"],
    name: Int32Array.of(0, 2),
    filename: Int32Array.of(1, 1),
    line: Int32Array.of(3, 9),
    kind: Uint8Array.of(0, 0),
    start: Int32Array.of(0, 2, 3, 4),
    frame: Int32Array.of(0, 1, 0, 1),
    userFrame: Int32Array.of(0, 0, 1),
    category: Uint8Array.of(1, 0, 0),
    aBytes: Float64Array.of(1 * GIB, 5 * GIB, 0),
    bBytes: Float64Array.of(4 * GIB, 0, 4 * GIB),
    aBlocks: Int32Array.of(1, 5, 0),
    bBlocks: Int32Array.of(4, 0, 4),
    numStacks: 3,
  },
};

describe("the rows of a comparison", () => {
  const rows = comparedBy(ANSWER, "stack");
  const all = [0, 1, 2];

  it("name the line and who called it", () => {
    expect(rows.names[0]).toContain("model.py:3");
    expect(rows.names[0]).toContain("←");
    expect(rows.texts[0]).toContain("/me/model.py:9 in main");
  });

  it("are those of the side asked for, or that hold the words", () => {
    const of = (only: "all" | "a" | "b", find = "") =>
      wantedRows(rows, all, { only, find });
    expect(of("all")).toEqual(all);
    expect(of("a")).toEqual([1]);
    expect(of("b")).toEqual([2]);
    expect(of("all", "MAIN model")).toEqual([0, 2]);
  });

  it("stand by the size of their difference, and say its share", () => {
    const columns = differenceColumns(rows, { theme: "light", byteUnit: "auto" });
    const by = (key: string) => columns.find((one) => one.key === key);
    expect(sortedRows(3, by("change")?.values, true)).toEqual([1, 2, 0]);
    expect(sortedRows(3, by("percent")?.values, true)).toEqual([2, 0, 1]);
    expect(all.map((row) => by("percent")?.cell(row).text)).toEqual([
      "+300 %",
      "gone",
      "new",
    ]);
    expect(by("a")?.cell(2).text).toBe("–");
    const { columns: sent } = tableOf(columns, [1, 0]);
    expect(sent.map(({ name }) => name)).toEqual([
      "stack",
      "a_bytes",
      "b_bytes",
      "difference_bytes",
    ]);
    expect(sent[3]?.values).toEqual(Float64Array.of(-5 * GIB, 3 * GIB));
  });

  it("say how much more it is, where that means something", () => {
    expect(percentText(1, 34.3)).toBe("34.3 ×");
    expect(percentText(1, 343)).toBe("");
    expect(changePercent(4, 5)).toBe(25);
    expect(changePercent(0, 0)).toBe(0);
    expect(changePercent(0, 5)).toBe(Number.POSITIVE_INFINITY);
  });

  it("read categories as words, and are none without their table", () => {
    expect(comparedBy(ANSWER, "size").names).toEqual(["2 MiB to 4 MiB"]);
    expect(comparedBy(ANSWER, "category").names).toEqual(["Activations", "Params"]);
    expect(comparedBy(ANSWER, "module").names).toEqual([]);
  });
});

const NOBODY: ReadonlySet<string> = new Set();

function parts(labels: readonly string[], a: readonly number[], b: readonly number[]) {
  const [aBytes, bBytes] = [Float64Array.from(a), Float64Array.from(b)];
  return { by: "category", labels, aBytes, bBytes } as unknown as CompareTable;
}

/** All that is written in the drawing. */
function waterfallTexts(steps: Parameters<typeof paintWaterfall>[1]): string {
  const pen = new SvgPen();
  paintWaterfall(pen, steps, { widthPx: 400, theme: "light", byteUnit: "auto" });
  return Array.from(pen.written().matchAll(/>([^<]+)</g), ([, text]) => text).join(
    " | ",
  );
}

describe("the waterfall", () => {
  it("leads from A to B over what differs", () => {
    const [category] = partsOf(null, ANSWER);
    if (category === undefined) throw new Error("there is no category");
    const steps = waterfallSteps(category, "light", NOBODY);
    expect(steps.map(({ label }) => label)).toEqual(["A", "Activations", "B"]);
    expect(steps[1]).toMatchObject({ from: 6 * GIB, to: 8 * GIB });
    const texts = waterfallTexts(steps);
    expect(texts).toContain("+2.00 GiB");
    expect(texts).not.toContain("axis begins");
  });

  it("says where its axis begins if that is not zero", () => {
    const steps = waterfallSteps(parts(["x"], [78 * GIB], [80 * GIB]), "dark", NOBODY);
    expect(waterfallTexts(steps)).toContain("The axis begins at");
  });

  it("names the line that has no category as it is written, red where it is blamed", () => {
    const line = "evaluate.py:52 append";
    const site = parts([line, "unknown"], [0, 0], [34 * GIB, GIB]);
    const [, first, second] = waterfallSteps(site, "light", new Set([line]));
    expect([first?.label, second?.label]).toEqual([line, "Unknown"]);
    expect([first?.isCulprit, second?.isCulprit]).toEqual([true, false]);
    const lines = { ...site, by: "line" } as const;
    expect(usualPart([site, lines])).toBe(site);
    const unknown = parts(["unknown"], [0], [GIB]);
    expect(usualPart([unknown, lines])).toBe(lines);
  });

  it("begins at zero where nothing differs", () => {
    const steps = waterfallSteps(parts(["x"], [GIB], [GIB]), "light", NOBODY);
    expect(waterfallTexts(steps)).not.toContain("axis begins");
  });

  it("sums what is too many to be named, and cuts long names in the middle", () => {
    const labels = Array.from(
      { length: 12 },
      (_, i) => `Transformer.layers.*.part_${i}`,
    );
    const a = labels.map(() => GIB);
    const b = labels.map((_, i) => (13 - i) * GIB);
    const steps = waterfallSteps(parts(labels, a, b), "light", NOBODY);
    expect(steps).toHaveLength(10);
    expect(steps.at(-2)).toMatchObject({ label: "all others", to: steps.at(-1)?.to });
    const texts = waterfallTexts(steps);
    expect(texts).toMatch(/Tran.*….*part_0/);
  });
});

describe("the numbers of two runs", () => {
  const runs = {
    a: { run: { name: "exp-1" } },
    b: { run: { name: "exp-2" } },
    sentence: "This run peaks 4.00 GiB lower than exp-1.",
    figures: [
      {
        ...{ label: "Peak", hint: "", note: "· rank 2 → 5", unit: "bytes" },
        ...{ a: 40 * GIB, b: 36 * GIB },
      },
      {
        ...{ label: "Growth per step", hint: "", note: "· rank 1", unit: "bytes" },
        ...{ a: 0, b: null },
      },
    ],
    tables: [
      {
        by: "category",
        labels: ["activation"],
        aBytes: Float64Array.of(GIB),
        bBytes: Float64Array.of(NaN),
        aBlocks: new Int32Array(),
        bBlocks: new Int32Array(),
      },
    ],
    tablesOf: "A: step 3, rank 0",
    stillReading: false,
  } as unknown as CompareRunsResponse;

  it("are written with their titles, and unknown where one side has none", () => {
    const { columns } = differenceTable([["Whole run", runs.figures]]);
    expect(columns[0]?.values).toEqual(["Whole run", "Whole run"]);
    expect(columns.at(-1)?.values).toEqual(Float64Array.of(-4 * GIB, NaN));
  });

  it("have parts: of two moments theirs, else of tracked steps", () => {
    expect(partsOf(runs, ANSWER)[0]?.aBytes).toEqual(Float64Array.of(GIB, 5 * GIB));
    const [category] = partsOf(runs, null);
    expect(category?.aBytes).toEqual(Float64Array.of(GIB));
    const rows = comparedBy(runs, "category");
    expect([rows.names, rows.only, rows.more]).toEqual([["Activations"], [""], []]);
    // A knows nothing of it: there is no difference, and B alone is listed.
    expect(onlySide({ a: Float64Array.of(NaN), b: Float64Array.of(1) })).toBe("b");
  });
});

describe("the run before", () => {
  const runOf = (name: string, firstMs: number, numRanks = 1): RunSummary =>
    ({ id: name, name, firstMs, numRanks }) as unknown as RunSummary;
  const runs = [
    runOf("exp-10", 5),
    runOf("exp-9", 3),
    runOf("base", 4),
    runOf("exp-2", 1),
    runOf("night/a", 6, 8),
    runOf("night/b", 7, 64),
    runOf("large", 8, 512),
  ];
  const before = (name: string): string | undefined => {
    const run = runs.find((one) => one.name === name);
    const others = runs.filter((one) => one !== run);
    return run === undefined ? undefined : runBefore(others, run)?.name;
  };

  it("is alike by its name, its folder or its ranks", () => {
    expect(before("exp-10")).toBe("exp-9");
    expect(before("base")).toBe("exp-9");
    expect(before("exp-2")).toBe("exp-9");
    expect(before("night/b")).toBe("night/a");
    expect(before("night/a")).toBe("night/b");
    expect(before("large")).toBeUndefined();
    const [one, two] = [runOf("one", 1, 2), runOf("two", 2, 3)];
    expect(runBefore([two], one)).toBe(two);
  });
});

function device(numEvents: number, bytes: readonly number[]): HistoryDevice {
  const event = Int32Array.from(bytes, (_, i) =>
    Math.floor((i * numEvents) / bytes.length),
  );
  return {
    numEvents,
    firstMs: 1000,
    lastMs: 5000,
    curve: {
      event,
      active: Float64Array.from(bytes),
      timeMs: Float64Array.from(event, (one) => 1000 + one),
    },
    marks: {
      kinds: ["oom", "step"],
      kind: Uint8Array.of(1, 0),
      moment: Int32Array.of(0, 7),
    },
  } as unknown as HistoryDevice;
}

describe("both timelines", () =>
  it("stand on one axis", () => {
    const [a, b] = [device(100, [1, 4, 2, 0]), device(1000, [2, 2, 2, 2])];
    const curve = curveOf(a, "share");
    expect([...curve.x]).toEqual([0, 0.25, 0.5, 0.75]);
    expect(curveOf(b, "event").last).toBe(1000);
    expect(curveOf(a, "time").last).toBe(4);
    expect([0, 0.3, 1, 1.1].map((at) => bytesAt(curve, at))).toEqual([1, 4, 0, NaN]);
    const other = { x: Float64Array.of(0, 0.5), bytes: Float64Array.of(2, 9), last: 1 };
    const [less, more] = fillsOf(curve, other, ["#00f", "#f80"]);
    // Each value holds until the next one.
    expect([...(less?.x ?? [])]).toEqual([0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1]);
    expect([...(less?.high ?? [])].slice(0, 4)).toEqual([NaN, NaN, 4, 4]);
    expect([...(less?.low ?? [])].slice(0, 4)).toEqual([NaN, NaN, 2, 2]);
    expect([...(more?.high ?? [])]).toEqual([2, 2, NaN, NaN, 9, 9, 9, 9]);
  }));

describe("the sides", () => {
  const histories = [
    ["x", 0],
    ["y", 1],
    ["z", 0],
    ["w", 1],
  ].map(([id, rank]) => ({ reference: { id, rank } }));
  const list = { histories, default: "y" } as unknown as HistoriesResponse;

  it("begin with the rank's history before, else with a near one", () => {
    expect(historyOfA(list, "", "z")).toBe("x");
    expect(historyOfA(list, "", "w")).toBe("y");
    expect(historyOfA(list, "", "x")).toBe("z");
    expect(historyOfA(list, "", null)).toBe("y");
    const alone = { ...list, histories: list.histories.slice(0, 1) };
    expect(historyOfA(alone, "", "x")).toBe("x");
  });

  it("offer peak, errors and the end", () =>
    expect(namedMoments(device(100, [1])).map(([value]) => value)).toEqual([
      "",
      "7",
      "99",
    ]));

  it("come from the URL", () => {
    const words = new Map([
      ["history", "h"],
      ["a_moment", "-1"],
      ["by", "nonsense"],
      ["match", "function"],
      ["part", "ranks"],
    ]);
    const params = readState(COMPARE, words);
    expect(params).toMatchObject({
      part: "ranks",
      match: "function",
      rows: "line",
      a: { history: "", moment: -1 },
      b: { history: "h", moment: null },
    });
    expect(writeState(COMPARE, { b: { ...params.b, device: 2 } })).toEqual({
      history: "h",
      history_device: "2",
      moment: null,
      source: null,
    });
  });
});
