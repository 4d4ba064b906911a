import { describe, expect, it } from "vitest";
import type {
  ModulesResponse,
  RunSummary,
  TableColumn,
  TableRows,
} from "../../../api/types.gen";
import { categoryColours } from "../../../model/category";
import { readState, writeState } from "../../shared/page_state";
import { tableOf } from "../../../widgets/row_table/columns";
import { columnsOf } from "../../shared/table/columns";
import { declared, declaredTable } from "../../shared/table/test_tables";
import {
  categorySwatches,
  moduleColours,
  moduleColumn,
  Modules,
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

const TREE: ModulesResponse["tree"] = {
  fqn: ["Net", "Net.layers", "Net.layers.0", "Net.layers.1", "Net.head"],
  label: ["Net", "2 × layers.*", "0", "1", "head"],
  parent: Int32Array.of(-1, 0, 1, 1, 0),
  numEqual: Int32Array.of(0, 2, 0, 0, 0),
  fold: Int32Array.of(-1, -1, -1, -1, -1),
};
const TYPES = ["Net", "ModuleList", "Block", "Block", "Linear"];

function numbers(key: string, values: readonly number[]): TableColumn {
  const unit = key.endsWith("_change_bytes") ? "change_bytes" : "bytes";
  const help = "";
  return declared({ key, title: key, help, unit, numbers: Float64Array.from(values) });
}

function tableWith(
  types: readonly string[],
  columns: readonly TableColumn[] = [],
): TableRows {
  return declaredTable({
    title: "Modules",
    empty: "",
    usual: "",
    numRows: types.length,
    columns: [
      ...columns,
      declared({ key: "type", title: "", help: "", unit: "text", texts: types }),
    ],
  });
}

const HELD = numbers("held_bytes", [100, NaN, 60, 90, 95]);
const CALLS = numbers("num_calls", [1, 0, 1, 1, 1]);

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
    tree: TREE,
    table: tableWith(TYPES, [HELD, CALLS]),
    split: null,
    categories: [
      { name: "sharded_param", group: "param" },
      { name: "param", group: "param" },
    ],
    absent: [],
    problems: [],
    ...changes,
  };
}

function cellOf(data: ModulesResponse, key: string, row: number) {
  const columns = columnsOf(
    data.table,
    { theme: "light", byteUnit: "B" },
    { titles: moduleTitles(data, new Modules(data)) },
  );
  return columns.find((column) => column.key === key)?.cell(row);
}

/** Net.layers holds Mamba, Mamba, Attention, Attention: two rows stand for two each. */
const LAYERS = ["{0,1}", "0", "1", "{2,3}", "2", "3"].map(
  (index) => `Net.layers.${index}`,
);
const HYBRID: ModulesResponse["tree"] = {
  fqn: ["Net", "Net.layers", ...LAYERS],
  label: LAYERS,
  parent: Int32Array.of(-1, 0, 1, 1, 1, 1, 1, 1),
  numEqual: Int32Array.of(0, 0, 2, 0, 0, 2, 0, 0),
  fold: Int32Array.of(-1, -1, 2, 2, 2, 5, 5, 5),
};

const HYBRID_TYPES = [
  "Net",
  "ModuleList",
  "Mamba",
  "Mamba",
  "Mamba",
  "Attention",
  "Attention",
  "Attention",
];

describe("the modules", () => {
  it("are found by name, and equal layers have the type of one", () => {
    const modules = new Modules(modulesOf());
    expect(modules.note(1, false)).toBe("Block");
    expect(modules.idOf("Net.head")).toBe(4);
    expect(modules.idOf("Net.{")).toBeNull();
  });

  it("stand below the row for layers of their type, where there are several types", () => {
    const modules = new Modules({ tree: HYBRID, table: tableWith(HYBRID_TYPES) });
    expect([...modules.tree.children(1)]).toEqual([2, 5]);
    expect([...modules.tree.children(5)]).toEqual([6, 7]);
    expect(modules.note(5, false)).toBe("Attention");
    expect(modules.isFold(5)).toBe(true);
    expect(modules.isFold(6)).toBe(false);
    expect(modules.num).toBe(6);
  });
});

describe("the numbers of modules", () => {
  it("say why they are not there", () => {
    const data = modulesOf();
    expect(cellOf(data, "held_bytes", 0)).toMatchObject({
      text: "100 B",
      title: "100 bytes",
    });
    expect(cellOf(data, "held_bytes", 1)?.text).toBe("–");
    expect(cellOf(data, "held_bytes", 1)?.title).toContain(
      "never at “after post-forward”",
    );
  });

  it("say both sides of a difference", () => {
    const data = modulesOf({
      table: tableWith(TYPES, [
        numbers("held_change_bytes", [50, NaN, -50, 0, NaN]),
        CALLS,
        HELD,
        numbers("baseline_held_bytes", [50, NaN, 110, 90, NaN]),
      ]),
      baseline: {
        kind: "rank",
        state: "after_post_forward",
        window: "w1",
        rank: 0,
        numRanks: 1,
        ofRanks: 1,
        words: "rank 0",
      },
    });
    expect(cellOf(data, "held_change_bytes", 0)).toMatchObject({
      text: "+50 B",
      title: "+50 bytes: 100 bytes, against 50 bytes (rank 0)",
    });
    expect(cellOf(data, "held_change_bytes", 2)?.text).toBe("−50 B");
    expect(cellOf(data, "held_change_bytes", 4)?.title).toContain("has no such module");
  });

  it("have the colours of the timeline, in headings of differences too", () => {
    const data = modulesOf();
    const colours = categoryColours("light", data.categories);
    expect(moduleColours(data, "light")).toMatchObject({ param: colours[1] });
    expect(categorySwatches(data, "light")).toMatchObject({
      param_bytes: colours[1],
      param_change_bytes: colours[1],
    });
  });
});

describe("the exported table", () =>
  it("has the modules' whole names", () => {
    const column = moduleColumn(new Modules(modulesOf()), false);
    const table = tableOf([column], [1, 4]);
    expect(table.columns[0]?.values).toEqual(["Net.layers", "Net.head"]);
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
