import { describe, expect, it } from "vitest";
import type {
  CompareBy,
  CompareResponse,
  CompareRunsResponse,
  CompareSide,
  CompareTable,
  HistoriesResponse,
  HistoryDevice,
  TableColumn,
  TableRows,
} from "../../api/types.gen";
import { sortedRows } from "../../model/shown_rows";
import { SvgPen } from "../../widgets/export/pen";
import { tableOf } from "../../widgets/row_table/columns";
import { readState, writeState } from "../shared/page_state";
import { bytesAt, curveOf, fillsOf } from "./charts/overlay_part";
import { paintWaterfall, partsOf, usualPart, waterfallSteps } from "./charts/waterfall";
import { columnsOf, numbersOf, rowsHolding } from "../shared/table/columns";
import { declared, declaredTable } from "../shared/table/test_tables";
import { changeText } from "../shared/table/units";
import { sidesOf } from "./difference_rows";
import { COMPARE } from "./params";
import { namedRows } from "./rows";
import { namedMoments } from "./sides";
import { historyOfA } from "./defaults";

const GIB = 2 ** 30;

function side(description: string): CompareSide {
  return { words: description, moment: { moment: 3 } } as unknown as CompareSide;
}

function numbers(
  key: string,
  title: string,
  ...values: readonly number[]
): TableColumn {
  const bar = title === "B − A" ? "difference" : "";
  return declared({
    key,
    title,
    help: "",
    unit: "bytes",
    bar,
    longest: 1,
    numbers: Float64Array.from(values),
  });
}

/** As the server makes it: NaN where a side has no such row. */
function table(
  by: CompareBy,
  labels: readonly string[],
  a: readonly number[],
  b: readonly number[],
): CompareTable {
  const numberOr0 = (value = NaN): number => (Number.isNaN(value) ? 0 : value);
  const change = a.map((value, row) => numberOr0(b[row]) - numberOr0(value));
  const columns = [
    { ...numbers(by, "Of"), texts: labels, unit: "text" as const },
    numbers("a_bytes", "A", ...a),
    numbers("b_bytes", "B", ...b),
    numbers("difference_bytes", "B − A", ...change),
  ];
  const texts = { title: "", summary: "", empty: "", colours: [] };
  const num = { numRows: a.length, numAll: a.length };
  return { by, rows: { ...texts, ...num, columns, usual: "difference_bytes" } };
}

/** Two stacks of both sides, one that only A has and one that only B has. */
const ANSWER: CompareResponse = {
  a: side("event 3"),
  b: side("event 9"),
  sentence: "B holds 2.00 GiB more than A (+33.3 %).",
  figures: table("line", [], [], []).rows,
  tables: [
    table("category", ["activation", "param"], [GIB, 5 * GIB], [3 * GIB, 5 * GIB]),
    table("size", ["2 MiB to 4 MiB"], [1], [2]),
    table("stack", [], [GIB, 5 * GIB, NaN], [4 * GIB, NaN, 4 * GIB]),
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
    aBytes: Float64Array.of(1 * GIB, 5 * GIB, 0),
    bBytes: Float64Array.of(4 * GIB, 0, 4 * GIB),
    numStacks: 3,
  },
};

describe("the rows of a comparison", () => {
  const named = (by: CompareBy): TableRows => {
    const parts = ANSWER.tables.find((part) => part.by === by);
    if (parts === undefined) throw new Error(`there is no ${by}`);
    return namedRows(parts, ANSWER);
  };
  const rows = named("stack");

  it("name the line and who called it", () => {
    expect(rows.columns[0]?.texts[0]).toContain("model.py:3");
    expect(rows.columns[0]?.texts[0]).toContain("←");
    expect(rows.columns[0]?.hints[0]).toContain("/me/model.py:9 in main");
    expect([...(rowsHolding(rows, "MAIN model") ?? [])]).toEqual([0, 2]);
  });

  it("are those of the side asked for", () => {
    const sides = sidesOf(rows);
    const of = (only: "all" | "a" | "b") =>
      [0, 1, 2].filter((row) => sides?.(only, row));
    expect(of("all")).toEqual([0, 1, 2]);
    expect(of("a")).toEqual([1]);
    expect(of("b")).toEqual([2]);
  });

  it("stand by the size of their difference", () => {
    const columns = columnsOf(rows, { theme: "light", byteUnit: "auto" });
    const by = (key: string) => columns.find((column) => column.key === key);
    expect(sortedRows(3, by("difference_bytes")?.values, true)).toEqual([1, 2, 0]);
    expect(by("a_bytes")?.cell(2).text).toBe("–");
    const { columns: sent } = tableOf(columns, [1, 0]);
    expect(sent.map(({ name }) => name)).toEqual([
      "stack",
      "a_bytes",
      "b_bytes",
      "difference_bytes",
    ]);
    expect(sent[3]?.values).toEqual(Float64Array.of(-5 * GIB, 3 * GIB));
  });

  it("read categories as words", () => {
    expect(named("size").columns[0]?.texts).toEqual(["2 MiB to 4 MiB"]);
    expect(named("category").columns[0]?.texts).toEqual(["Activations", "Params"]);
  });

  it("have no side to choose where one knows nothing", () => {
    const { rows: alone } = table("category", ["activation"], [NaN], [1]);
    const columns = alone.columns.filter(({ title }) => title !== "A");
    expect(sidesOf({ ...alone, columns })).toBeNull();
  });
});

it("a change says how much more it is, where that means something", () => {
  expect([33.3, 342, 3, -0.6, Infinity, -Infinity].map(changeText)).toEqual([
    "34.3 ×",
    "",
    "+300 %",
    "−60.0 %",
    "new",
    "gone",
  ]);
});

const NOBODY: ReadonlySet<string> = new Set();

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
    const steps = waterfallSteps(
      table("category", ["x"], [78 * GIB], [80 * GIB]),
      "dark",
      NOBODY,
    );
    expect(waterfallTexts(steps)).toContain("The axis begins at");
  });

  it("names the line that has no category as it is written, red where it is blamed", () => {
    const line = "evaluate.py:52 append";
    const site = table("category", [line, "unknown"], [0, 0], [34 * GIB, GIB]);
    const [, first, second] = waterfallSteps(site, "light", new Set([line]));
    expect([first?.label, second?.label]).toEqual([line, "Unknown"]);
    expect([first?.isCulprit, second?.isCulprit]).toEqual([true, false]);
    const lines = { ...site, by: "line" } as const;
    expect(usualPart([site, lines])).toBe(site);
    const unknown = table("category", ["unknown"], [0], [GIB]);
    expect(usualPart([unknown, lines])).toBe(lines);
  });

  it("begins at zero where nothing differs", () => {
    const steps = waterfallSteps(
      table("category", ["x"], [GIB], [GIB]),
      "light",
      NOBODY,
    );
    expect(waterfallTexts(steps)).not.toContain("axis begins");
  });

  it("sums what is too many to be named, and cuts long names in the middle", () => {
    const labels = Array.from(
      { length: 12 },
      (_, i) => `Transformer.layers.*.part_${i}`,
    );
    const a = labels.map(() => GIB);
    const b = labels.map((_, i) => (13 - i) * GIB);
    const steps = waterfallSteps(table("category", labels, a, b), "light", NOBODY);
    expect(steps).toHaveLength(10);
    expect(steps.at(-2)).toMatchObject({ label: "all others", to: steps.at(-1)?.to });
    const texts = waterfallTexts(steps);
    expect(texts).toMatch(/Tran.*….*part_0/);
  });
});

describe("the waterfall and the numbers beside it", () => {
  it("begin and end with the same bytes, also where rows were left out", () => {
    const part = table("line", ["a.py:1"], [2 * GIB], [3 * GIB]);
    const totals = declaredTable({
      title: "Numbers at these moments",
      empty: "",
      usual: "",
      numRows: 1,
      columns: [numbers("a", "A", 10 * GIB), numbers("b", "B", 14 * GIB)],
    });
    const steps = waterfallSteps(part, "light", NOBODY, totals);
    expect(steps.map(({ label, to }) => [label, to / GIB])).toEqual([
      ["A", 10],
      ["a.py:1", 11],
      ["all others", 14],
      ["B", 14],
    ]);
  });
});

describe("what two runs hold", () => {
  const runs = {
    a: { name: "exp-1" },
    b: { name: "exp-2" },
    sentence: "This run peaks 4.00 GiB lower than exp-1.",
    tables: [table("category", ["activation"], [GIB], [NaN])],
    tablesOf: "A: step 3, rank 0",
    stillReading: false,
  } as unknown as CompareRunsResponse;

  it("have parts: of two moments theirs, else of tracked steps", () => {
    const bytesOf = (of: readonly CompareTable[]) =>
      of[0] && numbersOf(of[0].rows, "a_bytes");
    expect(bytesOf(partsOf(runs, ANSWER))).toEqual(Float64Array.of(GIB, 5 * GIB));
    expect(bytesOf(partsOf(runs, null))).toEqual(Float64Array.of(GIB));
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
      timeMs: Float64Array.from(event, (number) => 1000 + number),
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
    expect([0, 0.3, 1, 1.1].map((x) => bytesAt(curve, x))).toEqual([1, 4, 0, NaN]);
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
    const url = new Map([
      ["history", "h"],
      ["a_moment", "-1"],
      ["by", "nonsense"],
      ["match", "function"],
      ["part", "ranks"],
    ]);
    const params = readState(COMPARE, url);
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
