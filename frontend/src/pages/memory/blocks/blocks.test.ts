import { describe, expect, it } from "vitest";
import type {
  AllocationLiveResponse,
  HistoryDevice,
  LedgerEntry,
} from "../../../api/types.gen";
import { parseSearch } from "../../../model/block_search";
import { OTHER_STACKS } from "../../../model/stacks/call_stacks";
import { testStacks, TRAINING } from "../../../model/stacks/test_stacks";
import { siteColour } from "../../../model/category";
import { BlockAxis } from "../../../widgets/block_stack/axis";
import { groupColours } from "../../../widgets/block_stack/colours";
import { BlockTile, WHOLE } from "../../../widgets/block_stack/tile";
import {
  tileAnswer,
  testDevice,
  testTile,
} from "../../../widgets/block_stack/test_tile";
import { allocationCommands, type AllocationsNow, STACK_FILES } from "./commands";
import {
  FLAME_GROUPS,
  flamePalette,
  Flames,
  heldExactly,
  lineRows,
  siteOf,
  stackCategories,
  type Held,
} from "./state/held";
import { holderRows } from "./held/holders_table";
import { exactGroups, ledgerParts, sitePart } from "./held/ledger_bar";
import { topOf } from "./state/view_words";
import { ordersOf, readAllocations } from "./state/params";
import { foundWords } from "./found";
import { heldTable, stackFiles } from "./held/stack_files";
import { whyUntimed } from "./words";

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

function live(
  rows: readonly (readonly [stack: number, bytes: number, category: number])[],
  moment = 5,
): AllocationLiveResponse {
  const active = rows.reduce((sum, [, bytes]) => sum + bytes, 0);
  const { lives } = tileAnswer();
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
      { category: "activation", bytes: active * 0.75, numBlocks: 3 },
      { category: "param", bytes: active * 0.25, numBlocks: 1 },
      { category: "temp", bytes: 0, numBlocks: 0 },
    ],
    stack: Int32Array.from(rows, ([stack]) => stack),
    stackBytes: Float64Array.from(rows, ([, bytes]) => bytes),
    stackBlocks: Int32Array.from(rows, (_, i) => i + 1),
    stackCategory: Uint8Array.from(rows, ([, , category]) => category),
    largest: lives,
    ledger: {
      entries: ENTRIES,
      reservedBytes: 1200,
      deviceUsedBytes: null,
    },
  };
}

describe("the words of the URL", () => {
  it("are read with their defaults, and nonsense is not taken", () => {
    const params = readAllocations(
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
      order: "category",
      x: null,
      range: { low: 3, high: 9 },
      device: null,
      flame: "tree",
      frames: "python",
    });
  });

  it("stack by colour where colours are no categories, unless said otherwise", () => {
    expect(readAllocations(new Map([["colour", "module"]])).order).toBe("group");
    const said = new Map([
      ["colour", "module"],
      ["order", "category"],
    ]);
    expect(readAllocations(said).order).toBe("category");
    expect(readAllocations(new Map([["order", "group"]])).order).toBe("category");
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

  it("knows stacks' categories from the tile, and better from exact answers", () => {
    const found = stackCategories(testTile(), [live([[3, 10, 1]])]);
    expect(FLAME_GROUPS[found.get(-1) ?? -1]).toBe("param");
    expect(FLAME_GROUPS[found.get(3) ?? -1]).toBe("param");
    const tileAlone = stackCategories(testTile(), [null]);
    expect(FLAME_GROUPS[tileAlone.get(3) ?? -1]).toBe("activation");
  });
});

describe("flames of what is held", () => {
  const mode = {
    choice: "user" as const,
    categories: new Map<number, number>(),
    palette: ["#111111", "#222222"],
  };
  const flames = new Flames(stacks, mode);
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
    const sides = flames.sandwich(held, main);
    expect(sides.callers.values[0]).toBe(160);
    expect(sides.callees.values[0]).toBe(160);
    const moved: Held = { ...held, bytes: Float64Array.of(1, 2, 3) };
    expect(flames.sandwich(moved, main).callees.values[0]).toBe(3);
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

  it("are those that hold anything, by the column chosen", () => {
    const bytes = { key: "bytes", descending: true } as const;
    expect(holderRows(held, stacks, null, bytes)).toEqual([1, 0, 2]);
    const blocks = { key: "blocks", descending: true } as const;
    expect(holderRows(held, stacks, null, blocks)).toEqual([2, 1, 0]);
    const place = { key: "place", descending: false } as const;
    expect(holderRows(held, stacks, null, place)).toEqual([0, 1, 2]);
  });

  it("are narrowed to what was searched for", () => {
    const found = Uint8Array.of(1, 0, 0, 0, 0);
    const bytes = { key: "bytes", descending: true } as const;
    expect(holderRows(held, stacks, found, bytes)).toEqual([0]);
  });
});

describe("the ledger", () => {
  const answer = live([
    [0, 880, 0],
    [1, 220, 1],
  ]);

  it("is as wide as what is reserved, with live memory by category", () => {
    const parts = ledgerParts(answer, null, "light");
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
    const parts = ledgerParts({ ...answer, ledger }, 2000, "dark");
    const bytesOf = (key: string) => parts.find((part) => part.key === key)?.bytes;
    expect(bytesOf("free")).toBe(500);
  });

  it("of one stream or pool is its categories alone", () => {
    const parts = ledgerParts({ ...answer, ledger: null }, 2000, "light");
    expect(parts.map(({ key }) => key)).toEqual(["activation", "param"]);
  });
});

describe("the line that holds most of what has no category", () => {
  const label = stacks.stackLabel(1);
  const held = live([
    [0, 300, 0],
    [1, 220, 1],
    [2, 80, 1],
  ]);
  const answer: AllocationLiveResponse = {
    ...held,
    categories: [
      { category: "activation", bytes: 300, numBlocks: 1 },
      { category: "unknown", bytes: 300, numBlocks: 5 },
    ],
    ledger: null,
  };
  const tile = testTile();
  const site = { key: "k", label, category: "unknown", stack: 1, bytes: 0 } as const;
  const groups = [...tile.answer.groups, site];
  const whole = new BlockTile({ ...tile.answer, groups }, WHOLE, "category");
  const lines = (culprits: readonly string[]) => ({
    site: siteOf(whole),
    culprits: new Set(culprits),
  });

  it("is a part of the ledger with its name, in red where a finding blames it", () => {
    expect(siteOf(tile)).toBe("");
    expect(siteOf(whole)).toBe(label);
    for (const named of [false, true]) {
      const part = sitePart(answer, stacks, lines(named ? [label] : []));
      const parts = ledgerParts(answer, null, "light", part);
      expect(parts.map((one) => [one.label, one.bytes])).toEqual([
        ["Activations", 300],
        [label, 220],
        ["Unknown", 80],
      ]);
      expect(parts[1]?.background).toBe(siteColour("light", named));
    }
    expect(sitePart(answer, stacks, { site: "", culprits: new Set() })).toBeNull();
  });

  it("has its bytes in the legend, and its colour among the holders", () => {
    const exact = exactGroups(answer, whole, stacks, lines([]));
    expect([...(exact ?? [])]).toEqual([
      ["activation", 300],
      ["unknown", 80],
      ["k", 220],
    ]);
    const palette = flamePalette("light");
    const colourOf = (stack: number, culprits: readonly string[]) => {
      const rows = stackCategories(null, [answer], lineRows(stacks, lines(culprits)));
      return palette[rows.get(stack) ?? -1];
    };
    expect(colourOf(1, [])).toBe(siteColour("light", false));
    expect(colourOf(1, [label])).toBe(siteColour("light", true));
    expect(colourOf(0, [stacks.stackLabel(0)])).toBe(siteColour("light", true));
    expect(groupColours("dark", groups, "category", new Set([label])).at(-1)).toBe(
      siteColour("dark", true),
    );
  });
});

describe("what a search says", () => {
  const tile = testTile();

  it("counts what is drawn, or says why nothing is", () => {
    const search = parseSearch(">40");
    const blocks = (_: unknown, slot: number): boolean =>
      (tile.answer.lives.size[slot] ?? 0) > 40;
    expect(foundWords([tile], { search, blocks }, "auto").short).toBe("2 drawn");
    const none = { search, blocks: () => false };
    expect(foundWords([tile], none, "auto").long).toContain("below 10 B are too thin");
    const odd = { search: parseSearch(">x"), blocks: null };
    expect(foundWords([tile], odd, "auto").long).toContain("is no size");
    expect(
      foundWords([tile], { search: parseSearch(""), blocks: null }, "auto").short,
    ).toBe("");
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
    expect(files.map(({ id }) => id)).toEqual(STACK_FILES.map(({ id }) => id));
  });

  it("have each key once, and say in words what they do", () => {
    // Nothing is run here.
    const commands = allocationCommands({ actions: {} } as AllocationsNow);
    const keys = commands.flatMap(({ key }) => (key === undefined ? [] : [key]));
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of ["w", "s", "a", "d", "f", "p", "[", "]", "m", "/", "Escape"]) {
      expect(keys).toContain(key);
    }
    expect(new Set(commands.map(({ id }) => id)).size).toBe(commands.length);
  });
});
