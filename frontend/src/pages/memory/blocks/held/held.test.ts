import { describe, expect, it } from "vitest";
import type {
  AllocationLiveResponse,
  CategoryGroup,
  LedgerEntry,
} from "../../../../api/types.gen";
import { siteColour } from "../../../../model/category";
import { OTHER_STACKS } from "../../../../model/stacks/call_stacks";
import { testStacks, TRAINING } from "../../../../model/stacks/test_stacks";
import { sortedRows } from "../../../../model/shown_rows";
import { groupColours, NO_LINES } from "../../../../widgets/block_stack/paint/colours";
import { testGroup } from "../../../../widgets/block_stack/test_tile";
import { heldTable, STACK_FILES, stackFiles } from "./files";
import { Flames } from "./flames";
import { heldColours, stacksInRange, type LiveStacks } from "./held";
import { ledgerParts } from "./ledger_bar";
import { columnsOf } from "../../../shared/table/columns";
import { declared, declaredTable } from "../../../shared/table/test_tables";
import { holderTable, paletteColours } from "./stack_table";

const stacks = testStacks(TRAINING);

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
  return { ...testGroup(name, name), bytes, numBlocks, pendingBytes: 0 };
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
    pinnedHostBytes: null,
  };
}

describe("what is held", () => {
  it("has the colour of its category, red where a finding names its line", () => {
    const answer = live([
      [0, 100, 0],
      [1, 60, 1],
    ]);
    const culprits = new Set([stacks.stackLabel(1)]);
    for (const named of [NO_LINES, culprits]) {
      const { palette, rows } = heldColours(answer, stacks, named, "light");
      const own = Array.from(rows(answer), (row) => palette[row]);
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
    expect(nothing.rows(answer)[0]).toBe(nothing.palette.length - 1);
  });
});

describe("flames of what is held", () => {
  const colours = heldColours(live([]), stacks, NO_LINES, "light");
  const flames = new Flames(stacks, "user", colours);
  const liveStacks = live([
    [0, 100, 0],
    [1, 60, 0],
    [2, 40, 1],
  ]);

  it("hold all bytes at the root, and keep their tree while bytes change", () => {
    const data = flames.tree(liveStacks);
    expect(data.values[0]).toBe(200);
    expect(data.title).toBe("live at event 5");
    const moved: LiveStacks = {
      ...liveStacks,
      stackBytes: Float64Array.of(1, 2, 3),
      moment: 6,
    };
    const again = flames.tree(moved);
    expect(again.tree).toBe(data.tree);
    expect(again.values[0]).toBe(6);
    expect(data.values[0]).toBe(200);
  });

  it("of a frame hold what its stacks hold, on both sides", () => {
    const main = stacks.path(0, "user")[0] ?? -1;
    expect(flames.side(liveStacks, main, "callers").values[0]).toBe(160);
    expect(flames.side(liveStacks, main, "callees").values[0]).toBe(160);
    const moved: LiveStacks = { ...liveStacks, stackBytes: Float64Array.of(1, 2, 3) };
    expect(flames.side(moved, main, "callees").values[0]).toBe(3);
  });

  it("of two moments say what each box held, also what is gone", () => {
    const before = live(
      [
        [0, 30, 0],
        [3, 50, 0],
      ],
      1,
    );
    const data = flames.difference(before, liveStacks);
    expect(data.change?.before[0]).toBe(80);
    expect(data.change?.after[0]).toBe(200);
    // As wide as the larger: 100 + 60 + 40 + 50.
    expect(data.values[0]).toBe(250);
    expect(data.title).toBe("event 5 against event 1");
  });

  it("fold what the pointer's columns do not name into their others", () => {
    const before = live(
      [
        [0, 30, 0],
        [3, 50, 0],
      ],
      1,
    );
    const follow: LiveStacks = {
      moment: 9,
      stack: Int32Array.of(0, OTHER_STACKS),
      stackBytes: Float64Array.of(10, 5),
      stackBlocks: null,
      weights: Float64Array.of(10, 5),
      stackCategory: Uint8Array.of(0),
    };
    const data = flames.difference(before, follow);
    const others = data.tree.find([OTHER_STACKS]) ?? -1;
    expect(data.change?.before[others]).toBe(50);
    expect(data.change?.after[others]).toBe(5);
    const next = flames.difference(before, {
      ...follow,
      stackBytes: Float64Array.of(10, 80),
    });
    expect(next.tree).toBe(data.tree);
    expect(next.change?.after[others]).toBe(80);
  });
});

const HOLDERS = declaredTable({
  title: "Top holders",
  empty: "",
  usual: "bytes",
  numRows: 0,
  columns: [
    declared({ key: "bytes", title: "Live", help: "", unit: "bytes", bar: "row" }),
    declared({ key: "blocks", title: "Blocks", help: "", unit: "count" }),
    declared({ key: "allocated_at", title: "Allocated at", help: "", unit: "stack" }),
  ],
});

describe("holders", () => {
  const liveStacks = live([
    [0, 60, 0],
    [1, 100, 0],
    [2, 60, 1],
    [3, 0, 0],
  ]);
  const colours = heldColours(live([]), stacks, NO_LINES, "light");
  const columnsOfHolders = (now: LiveStacks) =>
    columnsOf(
      holderTable(HOLDERS, now, colours),
      { theme: "light", byteUnit: "auto" },
      { stacks, colours: paletteColours(colours.palette) },
    );
  const columns = columnsOfHolders(liveStacks);

  it("are in the order of the column chosen", () => {
    const ordered = (key: string, descending: boolean) =>
      sortedRows(4, columns.find((column) => column.key === key)?.values, descending);
    expect(ordered("bytes", true)).toEqual([1, 0, 2, 3]);
    expect(ordered("blocks", true)).toEqual([3, 2, 1, 0]);
    expect(ordered("allocated_at", false).filter((slot) => slot < 3)).toEqual([
      0, 1, 2,
    ]);
  });

  it("say what they hold, and no number of blocks that is not known", () => {
    expect(columns.map(({ cell }) => cell(1).text)).toEqual([
      "100 B",
      "2",
      stacks.stackLabel(1),
    ]);
    const moving = { ...liveStacks, stackBlocks: null };
    const [, blocks] = columnsOfHolders(moving);
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

  it("counts what waits to be freed once, in a part of its own", () => {
    const waiting = { ...category("activation", 1000, 4), pendingBytes: 100 };
    const categories = [waiting, category("param", 100, 1)];
    const shown = (ledger: typeof answer.ledger) =>
      ledgerParts({ ...answer, ledger, categories }, null, "light", [])
        .filter(({ key }) => !["rounding", "inactive_split"].includes(key))
        .filter(({ bytes }) => (bytes ?? 0) > 0)
        .map(({ key, bytes }) => [key, bytes]);
    expect(shown(answer.ledger)).toEqual([
      ["activation", 900],
      ["param", 100],
      ["pending_free", 100],
    ]);
    expect(shown(null)).toEqual([
      ["activation", 1000],
      ["param", 100],
    ]);
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
      { ...site, bytes: 220, numBlocks: 2, pendingBytes: 0 },
    ],
    ledger: null,
  };

  it("is a part of the ledger with its name, in red where a finding blames it", () => {
    for (const named of [false, true]) {
      const culprits = new Set(named ? [site.label] : []);
      const { palette } = heldColours(answer, stacks, culprits, "light");
      const parts = ledgerParts(answer, null, "light", palette);
      expect(parts.map((part) => [part.label, part.bytes])).toEqual([
        ["Activations", 300],
        [site.label, 220],
        ["Unknown", 80],
      ]);
      expect(parts[1]?.background).toBe(siteColour("light", named));
    }
  });
});

describe("files", () => {
  const liveStacks = live([
    [0, 60, 0],
    [1, 100, 0],
  ]);

  it("list what is live with whole stacks", () => {
    const table = heldTable(liveStacks, stacks);
    expect(table.numRows).toBe(2);
    expect(table.columns.map(({ name }) => name)).toContain("stack");
    const origin = { run: "r", unreal: "virtual GPU" } as const;
    const files = stackFiles(
      liveStacks,
      stacks,
      "user",
      origin,
      "Active memory, rank 0",
    );
    expect(files.map(({ id }) => id)).toEqual(STACK_FILES.map(([id]) => id));
  });
});

describe("bytes of a range", () => {
  const { categories } = live([[0, 100, 0]]);
  const moment = { timeMs: null, step: null, phase: "" };
  const numbers = (...values: readonly number[]) => Float64Array.from(values);
  const column = (key: string, unit: "bytes" | "stack", values: Float64Array) =>
    declared({ key, unit, title: "", help: "", numbers: values });
  const table = declaredTable({
    title: "",
    empty: "",
    usual: "live_bytes",
    numRows: 2,
    colours: ["param", "comm"],
    columns: [
      column("allocated_bytes", "bytes", numbers(300, 200)),
      column("live_bytes", "bytes", numbers(0, 150)),
      column("allocated_at", "stack", numbers(4, 2)),
    ],
  });
  const answer = {
    device: 0,
    e0: 10,
    e1: 20,
    first: { ...moment, moment: 10 },
    last: { ...moment, moment: 19 },
    allocatedBytes: 500,
    numAllocated: 2,
    freedBytes: 350,
    numFreed: 1,
    liveBytes: 150,
    numLive: 1,
    earlierFreedBytes: 0,
    numEarlierFreed: 0,
    highestBytes: 900,
    highestMoment: 15,
    table,
  };

  it("are those that were allocated in it, or that live at its end", () => {
    const allocated = stacksInRange(answer, "allocated", categories);
    expect([...allocated.stack]).toEqual([4, 2]);
    expect([...allocated.stackBytes]).toEqual([300, 200]);
    expect(allocated.moment).toBe(19);
    expect([...stacksInRange(answer, "live", categories).stackBytes]).toEqual([0, 150]);
  });

  it("have the colours of the moment's categories; a category without bytes then is none", () => {
    const { palette, rows } = heldColours({ categories }, stacks, NO_LINES, "light");
    const [param, comm] = rows(stacksInRange(answer, "live", categories));
    expect(palette[param ?? -1]).toBe(
      groupColours("light", [testGroup("param", "param")], "category", NO_LINES)[0],
    );
    expect(comm).toBe(palette.length - 1);
  });
});
