import { describe, expect, it } from "vitest";
import type { ModulesResponse, RunSummary } from "../../../api/types.gen";
import { readState, writeState } from "../../shared/page_state";
import { tableOf } from "../../../widgets/row_table/columns";
import { columnsOf } from "../../shared/table/columns";
import {
  moduleColours,
  moduleColumn,
  Modules,
  moduleTable,
  moduleTitles,
} from "./columns";
import { measureState, MODULES, stateWords } from "./params";
import { boundaryWords } from "./window_timeline";

const RUN: RunSummary = {
  id: "r",
  name: "job",
  numRanks: 2,
  worldSize: 2,
  numAttempts: 1,
  firstMs: 0,
  lastMs: 1,
  lastStep: 1,
  live: false,
  simulated: false,
  virtualGpu: "",
  deviceType: "cuda",
  numProblems: 0,
  imported: false,
  madeOf: "recording",
};

const WINDOW = {
  id: "w1",
  words: "step 7, iteration 2",
  group: "step",
  function: "step",
  phase: "train",
  iteration: 2,
  attempt: 1,
  step: 7,
  timeMs: 1000,
  numRanks: 2,
};

function modulesOf(changes: Partial<ModulesResponse> = {}): ModulesResponse {
  return {
    run: RUN,
    windows: [WINDOW],
    numWindows: 1,
    window: "w1",
    ranks: Int32Array.of(0, 1),
    rank: 1,
    state: "after_post_forward",
    states: [
      {
        state: "before_pre_forward",
        words: "before pre-forward",
        group: "Forward of each module",
      },
      {
        state: "after_post_forward",
        words: "after post-forward",
        group: "Forward of each module",
      },
      {
        state: "window_peak",
        words: "peak of the step",
        group: "One moment for all modules",
      },
    ],
    call: null,
    maxCalls: 1,
    device: "cuda:0",
    devices: ["cuda:0"],
    measure: "held",
    facts: null,
    factWords: [],
    caveats: [],
    lead: null,
    baseline: null,
    tree: {
      fqn: ["Net", "Net.layers", "Net.layers.0", "Net.layers.1", "Net.head"],
      label: ["Net", "2 × layers.*", "0", "1", "head"],
      type: ["Net", "ModuleList", "Block", "Block", "Linear"],
      parent: Int32Array.of(-1, 0, 1, 1, 0),
      isFsdp: Uint8Array.of(1, 0, 1, 1, 0),
      paramBytes: Float64Array.of(0, 0, 10, 10, 4),
      bufferBytes: Float64Array.of(0, 0, 0, 0, 0),
      numEqual: Int32Array.of(0, 2, 0, 0, 0),
      fold: Int32Array.of(-1, -1, -1, -1, -1),
    },
    numCalls: Int32Array.of(1, 0, 1, 1, 1),
    callShown: Int32Array.of(0, -1, 0, 0, 0),
    timeUs: Float64Array.of(50, NaN, 20, 30, 40),
    totalBytes: Float64Array.of(100, NaN, 60, 90, 95),
    heldBytes: Float64Array.of(80, NaN, 20, 40, 10),
    ownBytes: Float64Array.of(10, NaN, 20, 40, 10),
    split: null,
    baselineTotalBytes: null,
    baselineHeldBytes: null,
    baselineOwnBytes: null,
    categories: [
      category("sharded_param", "param", [40, NaN, 40, 40, 40]),
      category("activation", "activation", [60, NaN, 20, 50, 55]),
      category("temp", "temp", [0, NaN, 0, 0, 0]),
    ],
    absent: [],
    problems: [],
    ...changes,
  };
}

function category(
  name: string,
  group: "param" | "activation" | "temp",
  bytes: readonly number[],
): ModulesResponse["categories"][number] {
  return { name, group, bytes: Float64Array.from(bytes), baselineBytes: null };
}

function drawn(changes: Partial<ModulesResponse> = {}) {
  const data = modulesOf(changes);
  const modules = new Modules(data.tree);
  const table = moduleTable({ data, find: "" });
  const columns = columnsOf(
    table,
    { theme: "light", byteUnit: "B" },
    { titles: moduleTitles(data, modules), colours: moduleColours(data, "light") },
  );
  return { modules, columns };
}

function visible(changes: Partial<ModulesResponse> = {}) {
  const { columns } = drawn(changes);
  return columns.filter(({ title }) => title !== "").map(({ key }) => key);
}

function cellsOf(changes: Partial<ModulesResponse> = {}) {
  return new Map(drawn(changes).columns.map((column) => [column.key, column]));
}

/** Net.layers holds Mamba, Mamba, Attention, Attention: two rows stand for two each. */
const LAYERS = ["{0,1}", "0", "1", "{2,3}", "2", "3"].map(
  (index) => `Net.layers.${index}`,
);
const HYBRID: ModulesResponse["tree"] = {
  fqn: ["Net", "Net.layers", ...LAYERS],
  label: LAYERS,
  type: [
    "Net",
    "ModuleList",
    "Mamba",
    "Mamba",
    "Mamba",
    "Attention",
    "Attention",
    "Attention",
  ],
  parent: Int32Array.of(-1, 0, 1, 1, 1, 1, 1, 1),
  isFsdp: new Uint8Array(8),
  paramBytes: new Float64Array(8),
  bufferBytes: new Float64Array(8),
  numEqual: Int32Array.of(0, 0, 2, 0, 0, 2, 0, 0),
  fold: Int32Array.of(-1, -1, 2, 2, 2, 5, 5, 5),
};

describe("the modules", () => {
  it("are found by name, and equal layers have the type of one", () => {
    const { modules } = drawn();
    expect(modules.note(1, false)).toBe("Block");
    expect(modules.idOf("Net.head")).toBe(4);
    expect(modules.idOf("Net.{")).toBeNull();
  });

  it("stand below the row for layers of their type, where there are several types", () => {
    const modules = new Modules(HYBRID);
    expect([...modules.tree.children(1)]).toEqual([2, 5]);
    expect([...modules.tree.children(5)]).toEqual([6, 7]);
    expect(modules.note(5, false)).toBe("Attention");
    expect(modules.isFold(5)).toBe(true);
    expect(modules.isFold(6)).toBe(false);
    expect(modules.num).toBe(6);
  });
});

describe("the columns", () => {
  it("leave out categories that are zero everywhere, not those that differ", () => {
    expect(visible()).toEqual([
      "held_bytes",
      "own_bytes",
      "activation_bytes",
      "sharded_param_bytes",
    ]);
    const [, , temp] = modulesOf().categories;
    if (temp === undefined) throw new Error("three categories");
    const baselineBytes = Float64Array.of(0, 0, 8, 0, 0);
    const column = cellsOf({ categories: [{ ...temp, baselineBytes }] }).get(
      "temp_bytes",
    );
    expect(column?.values?.[2]).toBe(-8);
  });

  it("never stand a rank's total beside what modules hold", () =>
    expect(visible({ measure: "total" })).toEqual([
      "total_bytes",
      "activation_bytes",
      "sharded_param_bytes",
    ]));

  it("show bars as shares of the largest number, and why a number is not there", () => {
    const total = cellsOf({ measure: "total" }).get("total_bytes");
    expect(total?.cell(0)).toMatchObject({ text: "100 B", bar: { share: 1 } });
    expect(total?.cell(1).text).toBe("–");
    expect(total?.cell(1).title).toContain("never at “after post-forward”");
    expect(total?.cell(1).bar).toBeUndefined();
  });

  it("show differences with their sign, around the middle", () => {
    const total = cellsOf({
      measure: "total",
      baselineTotalBytes: Float64Array.of(50, NaN, 110, 90, NaN),
      baseline: {
        kind: "rank",
        state: "after_post_forward",
        window: "w1",
        rank: 0,
        numRanks: 1,
        ofRanks: 1,
        words: "rank 0",
      },
    }).get("total_change_bytes");
    expect(total?.title).toBe("Δ\u00a0Rank total");
    expect(total?.cell(0)).toMatchObject({ text: "+50 B", bar: { from: 0.5 } });
    const { text, bar } = total?.cell(2) ?? {};
    expect(text).toBe("−50 B");
    expect((bar?.from ?? 0) + (bar?.share ?? 0)).toBe(0.5);
    expect(total?.cell(0).title).toBe(
      "+50 bytes: 100 bytes, against 50 bytes (rank 0)",
    );
    expect(total?.cell(4).title).toContain("has no such module");
  });

  it("say which call is shown only where modules are called again", () => {
    expect(cellsOf().has("which_call")).toBe(false);
    const again = cellsOf({
      maxCalls: 3,
      numCalls: Int32Array.of(3, 0, 1, 1, 1),
      callShown: Int32Array.of(2, -1, 0, 0, 0),
    });
    expect(again.get("which_call")?.cell(0).text).toBe("3 of 3");
    expect(again.get("which_call")?.cell(1).text).toBe("–");
  });
});

describe("the exported table", () =>
  it("has what the page compares, more of modules, and every digit", () => {
    const { modules, columns } = drawn();
    const table = tableOf([moduleColumn(modules, false), ...columns], [1, 4]);
    expect(table.columns[0]?.values).toEqual(["Net.layers", "Net.head"]);
    for (const column of table.columns) expect(column.values).toHaveLength(2);
    const names = table.columns.map(({ name }) => name);
    expect(names).toContain("rank_total_bytes");
    expect(names).toContain("activation_bytes");
    expect(names).not.toContain("baseline_own_bytes");
  }));

describe("words", () => {
  it("name a boundary as the table does", () => {
    const boundary = { x: 1, module: "Net.head", call: 1 } as const;
    const data = modulesOf();
    expect(boundaryWords(data, { ...boundary, state: "before_pre_forward" })).toBe(
      "before pre-forward of Net.head, call 2",
    );
    expect(stateWords(data, "after_optimizer")).toBe("after optimizer");
  });
});

describe("the words of the URL", () => {
  it("are read as they were written", () => {
    const state = { depth: 2, against: "rank:3", flat: true } as const;
    const entries = Object.entries(writeState(MODULES, state));
    const params = new Map(entries.map(([key, value]) => [key, value ?? ""]));
    expect(readState(MODULES, params)).toMatchObject(state);
  });

  it("show the rank's total where modules have moments of their own", () => {
    const data = modulesOf();
    expect(measureState("total", data).state).toBe("after_post_forward");
    expect(measureState("held", data).state).toBeNull();
  });
});
