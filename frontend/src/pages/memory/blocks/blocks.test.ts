import { describe, expect, it } from "vitest";
import type {
  AllocationLiveResponse,
  CategoryGroup,
  HistoryDevice,
  LedgerEntry,
} from "../../../api/types.gen";
import { siteColour } from "../../../model/category";
import { OTHER_STACKS } from "../../../model/stacks/call_stacks";
import { testStacks, TRAINING } from "../../../model/stacks/test_stacks";
import { sortedRows } from "../../../model/shown_rows";
import { BlockAxis } from "../../../widgets/block_stack/axis";
import { groupColours, NO_LINES } from "../../../widgets/block_stack/paint/colours";
import {
  testDevice,
  testGroup,
  testTile,
} from "../../../widgets/block_stack/test_tile";
import type { DrawnMarks } from "../../../widgets/block_stack/marks";
import { readState } from "../../shared/page_state";
import { blockActions, blockCommands, type ActionsOf } from "./actions";
import { heldTable, STACK_FILES, stackFiles } from "./held/files";
import { Flames } from "./held/flames";
import { heldColours, heldExactly, type Held } from "./held/held";
import { holderColumns } from "./held/stack_table";
import { ledgerParts } from "./held/ledger_bar";
import { foundWords, searchOf } from "./search";
import { BLOCKS, orderOf, ordersOf, whyUntimed } from "./state";
import { topOf } from "./use_blocks";

const stacks = testStacks(TRAINING);

describe("the axis of time", () => {
  const device = testDevice();
  const at = (firstMs: number | null, lastMs: number | null): HistoryDevice => ({
    ...device,
    firstMs,
    lastMs,
  });

  it.each([
    ["ascending times", device, ""],
    ["no times", { ...device, hasTimes: false }, "does not say when"],
    ["no event", at(null, null), "does not say when"],
    ["a clock that was set back", at(1100, 1000), "goes back"],
    ["one time for all", at(1000, 1000), "the same time"],
  ])("is there, or it is said why not: %s", (_, one, words) => {
    const why = whyUntimed(one);
    expect(why).toContain(words);
    // Said exactly where the picture falls back to events.
    expect(new BlockAxis(one, "time").kind).toBe(why === "" ? "time" : "event");
  });
});

const ENTRIES: readonly LedgerEntry[] = [
  { key: "live", bytes: 1000, caveat: "" },
  { key: "rounding", bytes: 24, caveat: "" },
  { key: "pending_free", bytes: 100, caveat: "" },
  { key: "inactive_split", bytes: 76, caveat: "" },
  { key: "free_segments", bytes: 0, caveat: "" },
  { key: "private_pools", bytes: 0, caveat: "" },
  { key: "non_torch", bytes: null, caveat: "the size of the device was not recorded" },
];

function category(name: CategoryGroup, bytes: number, numBlocks: number) {
  return { ...testGroup(name, name), bytes, numBlocks };
}

function live(
  rows: readonly (readonly [stack: number, bytes: number, category: number])[],
  moment = 5,
): AllocationLiveResponse {
  const active = rows.reduce((sum, [, bytes]) => sum + bytes, 0);
  return {
    device: 0,
    moment,
    timeMs: null,
    step: 3,
    phase: "train",
    activeBytes: active,
    allocatedBytes: active,
    reservedBytes: 1200,
    numBlocks: rows.length,
    categories: [
      category("activation", active * 0.75, 3),
      category("param", active * 0.25, 1),
      category("temp", 0, 0),
    ],
    stack: Int32Array.from(rows, ([stack]) => stack),
    stackBytes: Float64Array.from(rows, ([, bytes]) => bytes),
    stackBlocks: Int32Array.from(rows, (_, i) => i + 1),
    stackCategory: Uint8Array.from(rows, ([, , category]) => category),
    ledger: {
      entries: ENTRIES,
      reservedBytes: 1200,
      deviceUsedBytes: null,
    },
  };
}

describe("the words of the URL", () => {
  it("are read with their defaults, and nonsense is not taken", () => {
    const params = readState(
      BLOCKS,
      new Map([
        ["moment", "-1"],
        ["life", "-1"],
        ["colour", "plaid"],
        ["h0", "10"],
        ["h1", "5"],
        ["r0", "3"],
        ["r1", "9"],
        ["history_device", "cuda:0"],
      ]),
    );
    expect(params).toMatchObject({
      moment: -1,
      life: null,
      colour: "category",
      order: null,
      x: null,
      range: { low: 3, high: 9 },
      device: null,
      flame: "tree",
      frames: "python",
    });
  });

  it("stack by colour where colours are no categories, unless said otherwise", () => {
    expect(orderOf({ colour: "module", order: null })).toBe("group");
    expect(orderOf({ colour: "module", order: "category" })).toBe("category");
    expect(orderOf({ colour: "category", order: "group" })).toBe("category");
    expect(ordersOf("category")).toEqual(["category", "allocation"]);
  });
});

describe("the height of the picture", () => {
  it("is high enough for what is near the peak, not for a device far larger", () => {
    const device = testDevice();
    // 256 reserved are within reach of 180 active, and 300 of the device of those.
    expect(topOf(device)).toBeCloseTo(324);
    expect(topOf({ ...device, capacityBytes: 10_000 })).toBeCloseTo(256 * 1.08);
    const peaks = device.peaks.map((peak) =>
      peak.level === "reserved" ? { ...peak, bytes: 5000 } : peak,
    );
    expect(topOf({ ...device, capacityBytes: null, peaks })).toBeCloseTo(180 * 1.08);
  });
});

describe("what is held", () => {
  it("sums up the smallest of very many stacks, and loses no byte", () => {
    const rows = Array.from({ length: 5000 }, (_, i) => [i, 5000 - i, 0] as const);
    const held = heldExactly(live(rows));
    expect(held.stack).toHaveLength(4001);
    expect(held.stack.at(-1)).toBe(OTHER_STACKS);
    const sum = (values: Iterable<number>): number =>
      Array.from(values).reduce((total, one) => total + one, 0);
    expect(sum(held.bytes)).toBe((5000 * 5001) / 2);
    expect(sum(held.blocks ?? [])).toBe((5000 * 5001) / 2);
  });

  it("has the colour of its category, red where a finding names its line", () => {
    const answer = live([
      [0, 100, 0],
      [1, 60, 1],
    ]);
    const culprits = new Set([stacks.stackLabel(1)]);
    for (const named of [NO_LINES, culprits]) {
      const { palette, rows } = heldColours(answer, stacks, named, "light");
      const own = Array.from(rows(heldExactly(answer)), (row) => palette[row]);
      const [first, second] = groupColours(
        "light",
        answer.categories,
        "category",
        NO_LINES,
      );
      expect(own).toEqual([
        first,
        named === NO_LINES ? second : siteColour("light", true),
      ]);
    }
    // Before anything is known exactly all is a mixture.
    const nothing = heldColours(null, stacks, NO_LINES, "light");
    expect(nothing.rows(heldExactly(answer))[0]).toBe(nothing.palette.length - 1);
  });
});

describe("flames of what is held", () => {
  const colours = heldColours(live([]), stacks, NO_LINES, "light");
  const flames = new Flames(stacks, "user", colours);
  const held = heldExactly(
    live([
      [0, 100, 0],
      [1, 60, 0],
      [2, 40, 1],
    ]),
  );

  it("hold all bytes at the root, and keep their tree while bytes change", () => {
    const data = flames.tree(held);
    expect(data.values[0]).toBe(200);
    expect(data.title).toBe("live at event 5");
    const moved: Held = { ...held, bytes: Float64Array.of(1, 2, 3), moment: 6 };
    const again = flames.tree(moved);
    expect(again.tree).toBe(data.tree);
    expect(again.values[0]).toBe(6);
    expect(data.values[0]).toBe(200);
  });

  it("of a frame hold what its stacks hold, on both sides", () => {
    const main = stacks.path(0, "user")[0] ?? -1;
    expect(flames.side(held, main, "callers").values[0]).toBe(160);
    expect(flames.side(held, main, "callees").values[0]).toBe(160);
    const moved: Held = { ...held, bytes: Float64Array.of(1, 2, 3) };
    expect(flames.side(moved, main, "callees").values[0]).toBe(3);
  });

  it("of two moments say what each box held, also what is gone", () => {
    const before = heldExactly(
      live(
        [
          [0, 30, 0],
          [3, 50, 0],
        ],
        1,
      ),
    );
    const data = flames.difference(before, held);
    expect(data.change?.before[0]).toBe(80);
    expect(data.change?.after[0]).toBe(200);
    // As wide as the larger: 100 + 60 + 40 + 50.
    expect(data.values[0]).toBe(250);
    expect(data.title).toBe("event 5 against event 1");
  });

  it("fold what the pointer's columns do not name into their others", () => {
    const before = heldExactly(
      live(
        [
          [0, 30, 0],
          [3, 50, 0],
        ],
        1,
      ),
    );
    const follow: Held = {
      moment: 9,
      stack: Int32Array.of(0, OTHER_STACKS),
      bytes: Float64Array.of(10, 5),
      blocks: null,
      weights: Float64Array.of(10, 5),
      category: Uint8Array.of(0),
    };
    const data = flames.difference(before, follow);
    const others = data.tree.find([OTHER_STACKS]) ?? -1;
    expect(data.change?.before[others]).toBe(50);
    expect(data.change?.after[others]).toBe(5);
    const next = flames.difference(before, {
      ...follow,
      bytes: Float64Array.of(10, 80),
    });
    expect(next.tree).toBe(data.tree);
    expect(next.change?.after[others]).toBe(80);
  });
});

describe("holders", () => {
  const held = heldExactly(
    live([
      [0, 60, 0],
      [1, 100, 0],
      [2, 60, 1],
      [3, 0, 0],
    ]),
  );
  const colours = heldColours(live([]), stacks, NO_LINES, "light");
  const columns = holderColumns(held, stacks, colours, "auto");

  it("are in the order of the column chosen", () => {
    const ordered = (key: string, descending: boolean) =>
      sortedRows(4, columns.find((one) => one.key === key)?.values, descending);
    expect(ordered("bytes", true)).toEqual([1, 0, 2, 3]);
    expect(ordered("blocks", true)).toEqual([3, 2, 1, 0]);
    expect(ordered("place", false).filter((slot) => slot < 3)).toEqual([0, 1, 2]);
  });

  it("say what they hold, and no number of blocks that is not known", () => {
    expect(columns.map(({ cell }) => cell(1).text)).toEqual([
      ...["100 B", "2", stacks.stackLabel(1)],
    ]);
    const moving = { ...held, blocks: null };
    const [, blocks] = holderColumns(moving, stacks, colours, "auto");
    expect(blocks?.cell(1).text).toBe("–");
  });
});

describe("the ledger", () => {
  const answer = live([
    [0, 880, 0],
    [1, 220, 1],
  ]);

  it("is as wide as what is reserved, with live memory by category", () => {
    const parts = ledgerParts(answer, null, "light", []);
    const width = parts.reduce((sum, part) => sum + part.width, 0);
    expect(width).toBeCloseTo(1200);
    expect(parts.map(({ key }) => key)).toEqual([
      "activation",
      "param",
      "rounding",
      "pending_free",
      "inactive_split",
      "free_segments",
      "private_pools",
      "non_torch",
    ]);
    expect(parts.at(-1)?.bytes).toBeNull();
  });

  it("shows what of the device is left", () => {
    const ledger = {
      entries: ENTRIES,
      reservedBytes: 1200,
      deviceUsedBytes: 1500,
    };
    const parts = ledgerParts({ ...answer, ledger }, 2000, "dark", []);
    const bytesOf = (key: string) => parts.find((part) => part.key === key)?.bytes;
    expect(bytesOf("free")).toBe(500);
  });

  it("of one stream or pool is its categories alone", () => {
    const parts = ledgerParts({ ...answer, ledger: null }, 2000, "light", []);
    expect(parts.map(({ key }) => key)).toEqual(["activation", "param"]);
  });
});

describe("the line that holds most of what has no category", () => {
  const site = { key: "k", label: "a.py:1 f", category: "unknown", stack: 1 } as const;
  const answer: AllocationLiveResponse = {
    ...live([]),
    categories: [
      category("activation", 300, 1),
      category("unknown", 80, 5),
      { ...site, bytes: 220, numBlocks: 2 },
    ],
    ledger: null,
  };

  it("is a part of the ledger with its name, in red where a finding blames it", () => {
    for (const named of [false, true]) {
      const culprits = new Set(named ? [site.label] : []);
      const { palette } = heldColours(answer, stacks, culprits, "light");
      const parts = ledgerParts(answer, null, "light", palette);
      expect(parts.map((one) => [one.label, one.bytes])).toEqual([
        ["Activations", 300],
        [site.label, 220],
        ["Unknown", 80],
      ]);
      expect(parts[1]?.background).toBe(siteColour("light", named));
    }
  });
});

describe("what a search says", () => {
  const tile = testTile();

  it("counts what is drawn, or says why nothing is", () => {
    const said = (typed: string) => foundWords(tile, searchOf(typed, stacks), "auto");
    expect(said(">40").short).toBe("2 drawn");
    expect(said(">4000").long).toContain("below 10 B are too thin");
    expect(said(">x").long).toContain("is no size");
    expect(said("").short).toBe("");
  });
});

describe("files and commands", () => {
  const held = heldExactly(
    live([
      [0, 60, 0],
      [1, 100, 0],
    ]),
  );

  it("list what is live with whole stacks", () => {
    const table = heldTable(held, stacks);
    expect(table.numRows).toBe(2);
    expect(table.columns.map(({ name }) => name)).toContain("stack");
    const origin = { run: "r", unreal: "virtual GPU" } as const;
    const files = stackFiles(held, stacks, "user", origin, "Active memory, rank 0");
    expect(files.map(({ id }) => id)).toEqual(STACK_FILES.map(([id]) => id));
  });

  it("have each key once, and say in words what they do", () => {
    // Nothing is run here.
    const actions = {} as ReturnType<typeof blockActions>;
    const commands = blockCommands(
      { controller: null, view: {} } as ActionsOf,
      actions,
      [],
    );
    const keys = commands.flatMap(({ key }) => (key === undefined ? [] : [key]));
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of ["w", "s", "a", "d", "f", "p", "[", "]", "m", "Escape"]) {
      expect(keys).toContain(key);
    }
    expect(new Set(commands.map(({ id }) => id)).size).toBe(commands.length);
  });
});

const point = (kind: "oom" | "snapshot", moment: number) => ({
  kind,
  moment,
  x: moment,
  label: "",
  bytes: NaN,
});

function actionsAt(words: Readonly<Record<string, string>>) {
  const said: string[] = [];
  const set: Readonly<Record<string, string | null>>[] = [];
  const pages: [string, Readonly<Record<string, string | null>>][] = [];
  const controller = null;
  const marks: DrawnMarks = {
    points: [point("snapshot", 2), point("oom", 5), point("oom", 9)],
    spans: [],
    numRows: 0,
  };
  const actions = blockActions({
    view: {
      say: (sentence) => said.push(sentence),
      setParams: (changes) => set.push(changes),
      showPage: (name, changes) => pages.push([name, changes]),
    },
    state: readState(BLOCKS, new Map(Object.entries(words))),
    at: { history: "h", device: testDevice() },
    ...{ controller, marks, anchor: 4 },
  });
  return { actions, said, set, pages };
}

describe("what keys and buttons do to the moment", () => {
  it("goes from one out-of-memory error to the next, and round", () => {
    for (const [from, to] of [
      [undefined, "5"],
      ["5", "9"],
      ["9", "5"],
    ]) {
      const { actions, set } = actionsAt(from === undefined ? {} : { moment: from });
      actions.toOom();
      expect(set.at(-1)?.["moment"]).toBe(to);
    }
  });

  it("marks the moment that is shown, and lets go of the same one", () => {
    const first = actionsAt({});
    first.actions.mark();
    expect(first.set).toEqual([{ mark: "4", flame: "difference" }]);
    const again = actionsAt({ mark: "4" });
    again.actions.mark();
    expect(again.set).toEqual([{ mark: null, flame: null }]);
  });

  it("compares with the marked moment, or leaves the other side open", () => {
    const { actions, pages } = actionsAt({ mark: "1" });
    actions.compare();
    expect(pages[0]?.[0]).toBe("compare");
    expect(pages[0]?.[1]).toMatchObject({ moment: "4", a_history: "h", a_moment: "1" });
  });

  it("lets go of what was chosen last", () => {
    const all = { life: "1", r0: "0", r1: "9", stack: "2", moment: "3", mark: "4" };
    const { actions, set } = actionsAt(all);
    actions.clear();
    expect(set).toEqual([{ life: null }]);
    const next = actionsAt({ moment: "3", mark: "4" });
    next.actions.clear();
    expect(next.set).toEqual([{ moment: null }]);
  });
});
