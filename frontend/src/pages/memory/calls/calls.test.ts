import { describe, expect, it } from "vitest";
import type { FunctionsResponse, FunctionStat } from "../../../api/types.gen";
import { RUN } from "../modules/test_modules";
import { sortedRows } from "../../../model/shown_rows";
import { tableOf } from "../../../widgets/row_table/columns";
import { readState, writeState } from "../../shared/page_state";
import { callColumns, callsTable, selectedCall } from "./columns";
import {
  CALLS,
  foundStats,
  shownStats,
  sidesAfterClick,
  SIDES,
  statsAfterClick,
} from "./params";
import { callLines } from "../../shared/panels/over_calls";
import { valueColumns } from "./values";

function stat(
  name: string,
  start: readonly number[],
  end: readonly number[],
  more: Partial<FunctionStat> = {},
): FunctionStat {
  return {
    name,
    label: name,
    unit: "bytes",
    group: "device",
    start: Float64Array.from(start),
    end: Float64Array.from(end),
    difference: Float64Array.from(end, (value, i) => value - (start[i] ?? NaN)),
    ...more,
  };
}

const ALLOCATED = stat("allocated_bytes.all.current", [10, 10, 10], [30, 5, NaN]);
const RSS = stat("rss_bytes", [1, 1, 1], [1, 2, 3], { group: "process" });
const RETRIES = stat("num_alloc_retries", [0, 0, 0], [0, 0, 1], { unit: "count" });

function answer(changes: Partial<FunctionsResponse> = {}): FunctionsResponse {
  return {
    run: RUN,
    source: "recorded",
    functions: [{ function: "step", phase: "train", kinds: ["snaps"], numRanks: 2 }],
    function: "step",
    phase: "train",
    ranks: Int32Array.of(0, 1),
    rank: 0,
    calls: {
      attempt: Int32Array.of(1, 1, 1),
      iteration: Int32Array.of(2, 3, 4),
      step: Float64Array.of(2, 3, 4),
      startMs: Float64Array.of(1000, 2000, 3000),
      endMs: Float64Array.of(1500, 2250, NaN),
      collected: ["", "activations, history", ""],
    },
    numCalls: 3,
    stats: [ALLOCATED, RSS, RETRIES],
    growth: "",
    attempt: 1,
    iteration: 3,
    overRanks: null,
    tables: [],
    histories: [],
    numOwnHistories: 0,
    exportCommand: "",
    moduleWindow: null,
    absent: [],
    problems: [],
    ...changes,
  };
}

function columnsOf() {
  const look = { sides: SIDES, theme: "dark", byteUnit: "B" } as const;
  return callColumns({ data: answer(), stats: [ALLOCATED], ...look });
}

describe("the statistics", () => {
  const stats = [ALLOCATED, RSS, RETRIES];

  it("begin with the one that is drawn", () => {
    expect(shownStats(stats, null, RSS)).toEqual([RSS]);
    expect(shownStats(stats, "num_alloc_retries,gone", RSS)).toEqual([RETRIES]);
    expect(shownStats(stats, "gone", RSS)).toEqual([RSS]);
  });

  it("are switched on and off, and back to the usual ones", () => {
    const more = statsAfterClick(stats, [RSS], RSS, "num_alloc_retries");
    expect(more).toBe("rss_bytes,num_alloc_retries");
    expect(statsAfterClick(stats, [RSS, RETRIES], RSS, "num_alloc_retries")).toBeNull();
    expect(statsAfterClick(stats, [RSS], RSS, "rss_bytes")).toBeNull();
  });

  it("are found by every word, group by group", () => {
    expect(foundStats(stats, "alloc ret")).toEqual([RETRIES]);
    expect(foundStats([RSS, ALLOCATED], "")).toEqual([ALLOCATED, RSS]);
  });
});

describe("the calls", () => {
  it("stand in order of time, or by a column; what is missing stands last", () => {
    const order = (key: string, descending: boolean) => {
      const column = columnsOf().find((one) => one.key === key);
      return sortedRows(3, column?.values, descending);
    };
    expect(order("call", true)).toEqual([2, 1, 0]);
    expect(order("took", true)).toEqual([0, 1, 2]);
    expect(order("allocated_bytes.all.current:end", false)).toEqual([1, 0, 2]);
  });

  it("say why a side is missing", () => {
    const cell = (key: string, id: number) =>
      columnsOf()
        .find((column) => column.key === key)
        ?.cell(id);
    expect(cell("allocated_bytes.all.current:difference", 0)).toMatchObject({
      text: "+20 B",
      bar: { from: 0.5, share: 0.5 },
    });
    expect(cell("allocated_bytes.all.current:difference", 1)).toMatchObject({
      text: "−5 B",
      bar: { from: 0.375, share: 0.125 },
    });
    expect(cell("allocated_bytes.all.current:end", 2)?.title).toContain("died inside");
    expect(cell("took", 0)?.text).toBe("500 ms");
    expect(cell("took", 2)?.text).toBe("–");
    expect(cell("collected", 0)).toMatchObject({ text: "–", title: "nothing else" });
    expect(cell("collected", 1)?.text).toBe("activations, history");
  });

  it("show what was collected before statistics can push it out of sight", () => {
    const keys = columnsOf().map(({ key }) => key);
    expect(keys.indexOf("collected")).toBe(keys.indexOf("took") + 1);
  });

  it("name the one that the page is about", () => {
    expect(selectedCall(answer())).toBe(1);
    expect(selectedCall(answer({ attempt: 2 }))).toBeNull();
  });

  it("are exported whole", () => {
    const table = callsTable(answer(), [ALLOCATED]);
    expect(table.numRows).toBe(3);
    expect(table.columns.map(({ name }) => name)).toContain(
      "allocated_bytes.all.current difference",
    );
    for (const column of table.columns) expect(column.values).toHaveLength(3);
  });
});

describe("the words of the URL", () =>
  it("keep at least one side of a call", () => {
    expect(sidesAfterClick(SIDES, "start")).toEqual(["end", "difference"]);
    expect(sidesAfterClick(["end"], "end")).toEqual(["end"]);
    const sides = (said: string) => readState(CALLS, new Map([["sides", said]])).sides;
    expect(sides("<b>")).toEqual(SIDES);
    expect(sides("end")).toEqual(["end"]);
    expect(writeState(CALLS, { sides: SIDES })).toEqual({ sides: null });
  }));

describe("callLines", () =>
  it("runs over steps, or over the clock where steps do not ascend", () => {
    const { calls } = answer();
    const sides = [
      ["start", ALLOCATED.start] as const,
      ["end", ALLOCATED.end] as const,
    ];
    const steps = callLines(calls.step, calls.startMs, sides);
    expect(steps).toMatchObject({ x: "step", extent: { low: 2, high: 4 } });
    expect(steps.lines.map(({ id }) => id)).toEqual(["start", "end"]);
    const again = callLines(Float64Array.of(2, 2, NaN), calls.startMs, sides);
    expect(again).toMatchObject({ x: "wall", extent: { low: 1000, high: 3000 } });
    const none = callLines(calls.step, calls.startMs, [
      ["held", Float64Array.of(NaN, NaN, NaN)],
    ]);
    expect(none.lines).toEqual([]);
  }));

const TABLE = {
  kind: "activations",
  title: "",
  facts: "",
  empty: "",
  incomplete: false,
  name: ["Net", "layers.0", "outside any module"],
  type: ["Net", "Block", ""],
  dtype: ["torch.float32", "torch.float32", "torch.int64"],
  columns: [
    {
      key: "bytes",
      title: "Saved bytes",
      hint: "",
      unit: "bytes",
      signed: false,
      values: Float64Array.of(100, 400, 8),
    },
  ],
  sort: "bytes",
} as const;

describe("values by module", () => {
  it("say what module, type and dtype saved how much", () => {
    const columns = valueColumns(TABLE, "light", "B");
    expect(columns.map(({ key }) => key)).toEqual(["module", "dtype", "bytes"]);
    expect(columns[0]?.cell(0)).toEqual({ text: "Net" });
    expect(columns[0]?.cell(1)).toEqual({ text: "layers.0", note: "Block" });
    expect(columns[0]?.cell(2)).toMatchObject({ tone: "quiet" });
    expect(columns[2]?.cell(0)).toMatchObject({ text: "100 B", bar: { share: 0.25 } });
    const table = tableOf(columns, [0, 1, 2]);
    expect(table.columns.map(({ name }) => name)).toEqual([
      ...["module", "dtype", "bytes (bytes)"],
    ]);
    expect(table.columns[0]?.values).toEqual(TABLE.name);
  });

  it("show differences with their sign and absence as absence", () => {
    const [bytes] = TABLE.columns;
    const values = Float64Array.of(4, NaN, 0);
    const columns = [{ ...bytes, key: "rss_diff", signed: true, values }];
    const hooks = { ...TABLE, dtype: [], columns, sort: "" };
    const diff = valueColumns(hooks, "light", "B")[1];
    expect(diff?.cell(0).text).toBe("+4 B");
    expect(diff?.cell(0).bar).toBeUndefined();
    expect(diff?.cell(1)).toMatchObject({ text: "–", tone: "quiet" });
    expect(diff?.cell(2).tone).toBe("quiet");
  });
});
