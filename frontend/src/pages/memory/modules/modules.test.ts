import { describe, expect, it } from "vitest";
import { moduleColumns } from "./columns";
import { windowLines } from "./details";
import { caveats, factWords, momentWords, splitWords } from "./lead";
import {
  againstValue,
  againstWords,
  measureWords,
  readModules,
  sortAfterClick,
} from "./params";
import { bytesColumns, Modules, modulesTable, rowsInSight, shownValue } from "./rows";
import { FACTS, modulesOf, WINDOW } from "./test_modules";
import {
  baselineWords,
  boundaryWords,
  callWords,
  stateOptions,
  windowOptions,
} from "./words";

const NONE: ReadonlySet<string> = new Set();

function paramsOf(words: Readonly<Record<string, string>> = {}) {
  return readModules(new Map(Object.entries(words)));
}

function shown(
  words: Readonly<Record<string, string>> = {},
  toggled = NONE,
  changes: Parameters<typeof modulesOf>[0] = {},
) {
  const data = modulesOf(changes);
  const modules = new Modules(data.tree);
  const rows = rowsInSight(modules, bytesColumns(data), paramsOf(words), toggled);
  return rows.map(({ id }) => modules.fqn(id));
}

describe("the rows in sight", () => {
  it("begin with the root open, all else closed, and the largest first", () => {
    const peak = {
      state: "window_peak",
      heldBytes: Float64Array.of(80, 60, 20, 40, 10),
    } as const;
    expect(shown({}, NONE, peak)).toEqual(["Net", "Net.layers", "Net.head"]);
    const other = { ...peak, heldBytes: Float64Array.of(80, 10, 4, 6, 60) };
    expect(shown({}, NONE, other)).toEqual(["Net", "Net.head", "Net.layers"]);
    expect(shown({ sort: "model" }, NONE, other)).toEqual([
      "Net",
      "Net.layers",
      "Net.head",
    ]);
  });

  it("lead at first to what takes most; equal layers are one row", () => {
    const { tree } = modulesOf();
    const open = (modules: Modules) =>
      rowsInSight(modules, bytesColumns(modulesOf()), paramsOf(), NONE).length;
    expect(open(new Modules(tree, "Net.layers"))).toBe(3);
    expect(open(new Modules(tree, "Net.layers.1"))).toBe(5);
    expect(new Modules(tree).label(1)).toBe("2 × layers.*");
    expect(new Modules(tree).label(2)).toBe("0");
  });

  it("follow the depth and what was opened and closed by hand", () => {
    expect(shown({ depth: "all" })).toHaveLength(5);
    expect(shown({ depth: "0" })).toEqual(["Net"]);
    expect(shown({}, new Set(["Net.layers"]))).toHaveLength(5);
    expect(shown({ depth: "all" }, new Set(["Net"]))).toEqual(["Net"]);
  });

  it("are found by name and by type, in the tree with the way there", () => {
    expect(shown({ find: "layers.1" })).toEqual(["Net", "Net.layers", "Net.layers.1"]);
    expect(shown({ find: "LINEAR", flat: "1" })).toEqual(["Net.head"]);
    expect(shown({ find: "nowhere" })).toEqual([]);
  });

  it("are sorted by a number among siblings, and in the list among all", () => {
    expect(shown({ sort: "-held", depth: "all" })).toEqual([
      "Net",
      "Net.head",
      "Net.layers",
      "Net.layers.1",
      "Net.layers.0",
    ]);
    // A module without the state stands last, whichever way.
    expect(shown({ sort: "held", flat: "1" })[0]).toBe("Net.head");
    expect(shown({ sort: "held", flat: "1" }).at(-1)).toBe("Net.layers");
  });
});

describe("the columns", () => {
  it("leave out categories that are zero everywhere, not those that differ", () => {
    const keys = bytesColumns(modulesOf()).map(({ key }) => key);
    expect(keys).toEqual(["held", "own", "activation", "sharded_param"]);
    const [, , temp] = modulesOf().categories;
    if (temp === undefined) throw new Error("three categories");
    const baselineBytes = Float64Array.of(0, 0, 8, 0, 0);
    const compared = modulesOf({ categories: [{ ...temp, baselineBytes }] });
    const [, , column] = bytesColumns(compared);
    expect(column?.key).toBe("temp");
    expect(column === undefined ? 0 : shownValue(column, 2)).toBe(-8);
  });

  it("never stand a rank's total beside what modules hold", () => {
    const keys = bytesColumns(modulesOf({ measure: "total" })).map(({ key }) => key);
    expect(keys).toEqual(["total", "activation", "sharded_param"]);
  });

  function cells(changes: Parameters<typeof modulesOf>[0] = {}) {
    const data = modulesOf(changes);
    const modules = new Modules(data.tree);
    const bytes = bytesColumns(data);
    const columns = moduleColumns({
      data,
      modules,
      bytes,
      flat: false,
      theme: "light",
      byteUnit: "B",
    });
    return new Map(columns.map((column) => [column.key, column]));
  }

  it("show bars as shares of the largest number, and why a number is not there", () => {
    const total = cells({ measure: "total" }).get("total");
    expect(total?.cell(0)).toMatchObject({ text: "100 B", bar: { from: 0, to: 1 } });
    expect(total?.cell(1).text).toBe("–");
    expect(total?.cell(1).title).toContain("never at “after post-forward”");
    expect(total?.cell(1).bar).toBeUndefined();
  });

  it("show differences with their sign, around the middle", () => {
    const compared = cells({
      measure: "total",
      baselineTotalBytes: Float64Array.of(50, NaN, 110, 90, NaN),
      baseline: {
        kind: "rank",
        state: "after_post_forward",
        window: "w1",
        rank: 0,
        numRanks: 1,
        ofRanks: 1,
      },
    });
    const total = compared.get("total");
    expect(total?.title).toBe("Δ\u00a0Rank\ntotal");
    expect(total?.cell(0)).toMatchObject({ text: "+50 B", bar: { from: 0.5 } });
    expect(total?.cell(2)).toMatchObject({ text: "−50 B", bar: { to: 0.5 } });
    expect(total?.cell(0).title).toBe(
      "+50 bytes: 100 bytes, against 50 bytes (rank 0)",
    );
    expect(total?.cell(4).title).toContain("has no such module");
  });

  it("say which call is shown only where modules are called again", () => {
    expect(cells().has("call")).toBe(false);
    const again = cells({
      maxCalls: 3,
      numCalls: Int32Array.of(3, 0, 1, 1, 1),
      callShown: Int32Array.of(2, -1, 0, 0, 0),
    });
    expect(again.get("call")?.cell(0).text).toBe("3 of 3");
    expect(again.get("call")?.cell(1).text).toBe("–");
  });
});

describe("the exported table", () =>
  it("holds every module that was searched for, open or not, with every digit", () => {
    const data = modulesOf();
    const table = modulesTable(data, new Modules(data.tree), "layers");
    expect(table.numRows).toBe(3);
    expect(table.columns[0]?.values).toEqual([
      "Net.layers",
      "Net.layers.0",
      "Net.layers.1",
    ]);
    for (const column of table.columns) expect(column.values).toHaveLength(3);
    const names = table.columns.map(({ name }) => name);
    expect(names).toContain("rank_total_bytes");
    expect(names).toContain("temp_bytes");
    expect(names).not.toContain("baseline_own_bytes");
  }));

describe("words", () => {
  it("list the states there are, in order of time", () => {
    const groups = stateOptions(modulesOf().states);
    expect(groups.map(({ options }) => options)).toEqual([
      ["before_pre_forward", "after_post_forward"],
      ["window_peak"],
    ]);
  });

  it("group windows by function, phase and attempt, the newest first", () => {
    const windows = [
      WINDOW,
      { ...WINDOW, id: "w2", phase: "val" },
      { ...WINDOW, id: "w3", iteration: 3 },
    ];
    const groups = windowOptions(windows);
    expect(groups.map(({ group }) => group)).toEqual(["step", "step · val"]);
    expect(groups[0]?.options.map(({ id }) => id)).toEqual(["w3", "w1"]);
  });

  it("name what is compared with, and how much of it was read", () => {
    const median = {
      kind: "median",
      state: "window_peak",
      window: "w1",
      rank: null,
      numRanks: 60,
      ofRanks: 4096,
    } as const;
    expect(baselineWords(median, [])).toBe("the median of 60 of 4,096 ranks");
    expect(baselineWords({ ...median, kind: "window" }, [WINDOW])).toBe(
      "iteration 2 · step 7",
    );
  });

  it("name a boundary as the table does", () => {
    const boundary = { x: 1, module: "Net.head", call: 1 } as const;
    expect(boundaryWords({ ...boundary, state: "before_pre_backward" })).toBe(
      "before pre-backward of Net.head, call 2",
    );
  });

  it("say plainly what the numbers are not", () => {
    expect(caveats(FACTS)).toEqual([]);
    const heads = caveats({
      ...FACTS,
      estimate: "eager estimate",
      incomplete: true,
      numEventsDropped: 3,
    }).map(({ head }) => head);
    expect(heads).toEqual(["Eager estimate.", "Incomplete.", "3 events were dropped."]);
    expect(factWords(FACTS, "auto")).toContain("peak of the step 1.00 KiB at 2.00 ms");
  });
});

describe("the figures above the table", () => {
  const split = {
    totalBytes: 100,
    heldBytes: 80,
    unattributedBytes: 20,
    unattributed: [
      { name: "input", group: "activation", bytes: 4 },
      { name: "other", group: "unknown", bytes: 16 },
    ],
    largest: {
      name: "activation",
      group: "activation",
      module: "Net.layers",
      numEqual: 2,
      bytes: 60,
    },
  } as const;

  it("name the moment, and where the rest lies", () => {
    const data = modulesOf({ state: "window_peak", split });
    expect(momentWords(data)).toBe(" peak, step 7, rank 1");
    expect(momentWords({ ...data, state: "window_end" })).toBe(
      " at the end of step 7, rank 1",
    );
    expect(splitWords(data, "B")).toBe(
      "Modules hold 80 B; 20 B belong to no module (other 16 B, inputs 4 B).",
    );
    expect(splitWords(modulesOf(), "B")).toBe("");
  });

  it("name the call by its step, or by its function", () => {
    const called = { ...WINDOW, function: "train_batch", iteration: 3 };
    expect(callWords({ windows: [called], window: "w1" })).toBe("train_batch, call 3");
    expect(callWords({ windows: [], window: "w1" })).toBe("the tracked call");
  });
});

describe("measureWords", () =>
  it("shows the rank's total where modules have moments of their own", () => {
    expect(measureWords("total", modulesOf())).toMatchObject({
      measure: "total",
      state: "after_post_forward",
    });
    expect(measureWords("held", modulesOf())).toMatchObject({
      measure: null,
      state: null,
    });
  }));

describe("sortAfterClick", () =>
  it("goes from largest first over smallest first back to the model's order", () => {
    expect(sortAfterClick(paramsOf(), "own")).toBe("-own");
    expect(sortAfterClick(paramsOf({ sort: "-own" }), "own")).toBe("own");
    expect(sortAfterClick(paramsOf({ sort: "own" }), "own")).toBe("model");
    expect(sortAfterClick(paramsOf({ sort: "own" }), "held")).toBeNull();
    expect(sortAfterClick(paramsOf(), "held")).toBe("held");
  }));

describe("what is compared with", () =>
  it("is one choice: its words are read as they were written", () => {
    const baseline = {
      kind: "window",
      state: "window_peak",
      window: "step/train/2@3",
      rank: 4,
      numRanks: 1,
      ofRanks: 2,
    } as const;
    const none = { against_state: null, against_window: null, against_rank: null };
    expect(againstWords(againstValue(baseline))).toEqual({
      ...none,
      against: "window",
      against_window: "step/train/2@3",
    });
    expect(againstWords(againstValue({ ...baseline, kind: "rank" }))).toEqual({
      ...none,
      against: "rank",
      against_rank: "4",
    });
    expect(againstWords("median")).toEqual({ ...none, against: "median" });
    expect(againstWords(againstValue(null))).toEqual({ ...none, against: null });
  }));

describe("windowLines", () => {
  const over = {
    windows: ["w1", "w2"],
    step: Float64Array.of(3, 9),
    totalBytes: Float64Array.of(1, 2),
    heldBytes: Float64Array.of(NaN, NaN),
    categories: [],
    ofWindows: 2,
  };

  it("runs over steps, and over the clock where steps do not ascend", () => {
    expect(windowLines(over, [])).toMatchObject({
      x: "step",
      lines: [{ id: "total" }],
    });
    const again = { ...over, step: Float64Array.of(9, 3) };
    const windows = [WINDOW, { ...WINDOW, id: "w2", timeMs: 2000 }];
    const { x, lines } = windowLines(again, windows);
    expect(x).toBe("wall");
    expect(lines[0]?.x).toEqual(Float64Array.of(1000, 2000));
  });
});
