import { describe, expect, it } from "vitest";
import type { FunctionsResponse, FunctionStat } from "../../../api/types.gen";
import { RUN } from "../modules/test_modules";
import { callColumns, callRows, callsTable, kindsOf, selectedCall } from "./call_rows";
import { captureWords, exportCommand, orderedHistories } from "./histories";
import { orderAfterClick, readFunctions, sidesAfterClick, SIDES } from "./params";
import { callLines, growthWords } from "./over";
import { shownStats, statGroups, statLabel, statsAfterClick } from "./stats";
import { activationList, hookList, listRows, OUTSIDE } from "./values";

function stat(
  name: string,
  start: readonly number[],
  end: readonly number[],
  more: Partial<FunctionStat> = {},
): FunctionStat {
  return {
    name,
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

const HISTORY = {
  id: "h",
  rank: 0,
  attempt: 1,
  function: "step",
  phase: "train",
  iteration: 2,
  context: "start",
  label: "",
  step: 2,
  timeMs: 0,
  numBytes: 100,
  path: "",
} as const;

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
      kinds: Uint8Array.of(1, 1 | 4 | 16, 1),
    },
    numCalls: 3,
    stats: [ALLOCATED, RSS, RETRIES],
    attempt: 1,
    iteration: 3,
    overRanks: null,
    hooks: null,
    activations: null,
    histories: [],
    moduleWindow: null,
    absent: [],
    problems: [],
    ...changes,
  };
}

function paramsOf(words: Readonly<Record<string, string>> = {}) {
  return readFunctions(new Map(Object.entries(words)));
}

describe("the statistics", () => {
  const stats = [ALLOCATED, RSS, RETRIES];

  it("begin with the one that is drawn", () => {
    expect(shownStats(stats, null, RSS)).toEqual([RSS]);
    expect(shownStats(stats, ["num_alloc_retries", "gone"], RSS)).toEqual([RETRIES]);
    expect(shownStats(stats, ["gone"], RSS)).toEqual([RSS]);
  });

  it("are switched on and off, and back to the usual ones", () => {
    const more = statsAfterClick(stats, [RSS], RSS, "num_alloc_retries");
    expect(more).toBe("rss_bytes,num_alloc_retries");
    expect(statsAfterClick(stats, [RSS, RETRIES], RSS, "num_alloc_retries")).toBeNull();
    expect(statsAfterClick(stats, [RSS], RSS, "rss_bytes")).toBeNull();
  });

  it("keep torch's spelling where it is not common", () => {
    expect(statLabel("allocated_bytes.all.current")).toBe("Allocated");
    expect(statLabel("active_bytes.large_pool.peak")).toBe(
      "active_bytes.large_pool.peak",
    );
    expect(statLabel("vms_bytes")).toBe("VMS");
    expect(statLabel("hook.rss_diff")).toBe("rss_diff");
  });

  it("are found by every word", () => {
    expect(statGroups(stats, "alloc ret")).toEqual([
      { title: "Device memory", stats: [RETRIES] },
    ]);
    expect(statGroups(stats, "").map(({ title }) => title)).toEqual([
      "Device memory",
      "Process",
    ]);
  });
});

describe("the calls", () => {
  it("stand newest first, or by a column; what is missing stands last", () => {
    const order = (words: Readonly<Record<string, string>>) =>
      callRows(answer(), paramsOf(words), [ALLOCATED]).map(({ id }) => id);
    expect(order({})).toEqual([2, 1, 0]);
    expect(order({ order: "-took" })).toEqual([0, 1, 2]);
    expect(order({ order: "allocated_bytes.all.current:end" })).toEqual([1, 0, 2]);
    expect(order({ order: "nothing" })).toEqual([2, 1, 0]);
  });

  it("say why a side is missing", () => {
    const columns = callColumns({
      data: answer(),
      stats: [ALLOCATED],
      sides: SIDES,
      theme: "dark",
      byteUnit: "B",
    });
    const cell = (key: string, id: number) =>
      columns.find((column) => column.key === key)?.cell(id);
    expect(cell("allocated_bytes.all.current:difference", 0)).toMatchObject({
      text: "+20 B",
      bar: { from: 0.5, to: 1 },
    });
    expect(cell("allocated_bytes.all.current:difference", 1)).toMatchObject({
      text: "−5 B",
      bar: { from: 0.375, to: 0.5 },
    });
    expect(cell("allocated_bytes.all.current:end", 2)?.title).toContain("died inside");
    expect(cell("took", 0)?.text).toBe("500 ms");
    expect(cell("took", 2)?.text).toBe("–");
    expect(cell("kinds", 0)).toMatchObject({ text: "–", title: "nothing else" });
    expect(cell("kinds", 1)?.text).toBe("activations, history");
  });

  it("show what was collected before statistics can push it out of sight", () => {
    const columns = callColumns({
      data: answer(),
      stats: [ALLOCATED],
      sides: SIDES,
      theme: "dark",
      byteUnit: "B",
    });
    const keys = columns.map(({ key }) => key);
    expect(keys.indexOf("kinds")).toBe(keys.indexOf("took") + 1);
    const width = columns.find(({ key }) => key === "kinds")?.minWidthPx ?? 0;
    expect(width).toBeGreaterThan("activations, history".length * 7);
  });

  it("name the one that the page is about", () => {
    expect(selectedCall(answer())).toBe(1);
    expect(selectedCall(answer({ attempt: 2 }))).toBeNull();
    expect(kindsOf(31)).toHaveLength(5);
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

describe("the words of the URL", () => {
  it("keep at least one side of a call", () => {
    expect(sidesAfterClick(SIDES, "start")).toBe("end,difference");
    expect(sidesAfterClick(["end"], "end")).toBe("end");
    expect(sidesAfterClick(["start", "end"], "difference")).toBeNull();
    expect(paramsOf({ sides: "<b>" }).sides).toEqual(SIDES);
    expect(paramsOf({ sides: "end" }).sides).toEqual(["end"]);
  });

  it("order by largest, smallest, and as they came", () => {
    expect(orderAfterClick(paramsOf(), "took")).toBe("-took");
    expect(orderAfterClick(paramsOf({ order: "-took" }), "took")).toBe("took");
    expect(orderAfterClick(paramsOf({ order: "took" }), "took")).toBeNull();
  });
});

describe("the sentence about all calls", () =>
  it("says what one call adds, and what all do", () => {
    const grown = stat("rss_bytes", [10, 20, 30], [14, 22, 36]);
    expect(growthWords(grown, "step", "B")).toBe(
      "RSS grows by 4 B in a call of step (median of 3); from the first call to the last it grows by 26 B.",
    );
    expect(growthWords(stat("rss_bytes", [10], [10]), "f", "B")).toBe(
      "RSS does not change in a call of f.",
    );
    expect(growthWords(stat("rss_bytes", [10], [NaN]), "f", "B")).toContain(
      "not measured",
    );
  }));

describe("callLines", () =>
  it("runs over steps, or over the clock where steps do not ascend", () => {
    const { calls } = answer();
    const steps = callLines(calls, ALLOCATED);
    expect(steps).toMatchObject({ x: "step", extent: { low: 2, high: 4 } });
    expect(steps.lines.map(({ id }) => id)).toEqual(["start", "end"]);
    const again = { ...calls, step: Float64Array.of(2, 2, NaN) };
    expect(callLines(again, ALLOCATED)).toMatchObject({
      x: "wall",
      extent: { low: 1000, high: 3000 },
    });
  }));

const MODULES = { paths: ["", "layers.0"], types: ["Net", "Block"] };

describe("hook values and activations", () => {
  it("call the root by its class and what has no module by its name", () => {
    const saved = activationList(
      {
        modules: MODULES,
        module: Int32Array.of(0, 1, -1),
        dtypes: ["torch.float32", "torch.int64"],
        dtype: Int32Array.of(0, 0, 1),
        numTensors: Float64Array.of(2, 3, 1),
        bytes: Float64Array.of(100, 400, 8),
        nppCompatBytes: Float64Array.of(200, 400, 8),
        totalBytes: 508,
        totalNppCompatBytes: 608,
        incomplete: false,
      },
      "light",
      "B",
    );
    expect(saved.columns[0]?.cell(0)).toMatchObject({ text: "Net", note: "" });
    expect(saved.columns[0]?.cell(2)).toMatchObject({ text: OUTSIDE });
    const bytes = saved.columns.find(({ key }) => key === "saved_bytes");
    expect(bytes?.cell(0)).toMatchObject({ text: "100 B", bar: { to: 0.25 } });
    const ids = (find: string) =>
      listRows(saved, find, { key: "saved_bytes", descending: true }).map(
        ({ id }) => id,
      );
    expect(ids("")).toEqual([1, 0, 2]);
    expect(ids("int64")).toEqual([2]);
    expect(saved.table.columns[0]?.values).toEqual(["Net", "layers.0", OUTSIDE]);
  });

  it("show differences with their sign and absence as absence", () => {
    const hooks = hookList(
      {
        modules: MODULES,
        module: Int32Array.of(0, 1),
        attributes: [
          { name: "rss_diff", unit: "bytes", values: Float64Array.of(4, NaN) },
        ],
        incomplete: false,
      },
      "B",
    );
    const diff = hooks.columns[1];
    expect(diff?.cell(0).text).toBe("+4 B");
    expect(diff?.cell(1)).toMatchObject({ text: "–", tone: "quiet" });
  });
});

describe("allocator histories", () => {
  it("are named by what took them, those of the call shown first", () => {
    const other = { ...HISTORY, id: "o", iteration: 3, context: "end" } as const;
    const hand = { ...HISTORY, id: "x", function: "", label: "before eval" } as const;
    expect(captureWords(HISTORY)).toBe("step iteration 2, start");
    expect(captureWords({ ...HISTORY, phase: "val" })).toContain("(val)");
    expect(captureWords(hand)).toBe("before eval");
    const found = orderedHistories(answer({ histories: [HISTORY, hand, other] }));
    expect(found.map(({ id }) => id)).toEqual(["o", "h", "x"]);
  });

  it("tell a command that survives odd names", () => {
    expect(exportCommand("a/b-1", 3)).toBe(
      "memboard export LOGDIR --run a/b-1 --rank 3 --history",
    );
    expect(exportCommand("it's $(rm)", 0)).toContain("--run 'it'\\''s $(rm)' ");
  });
});
