import { describe, expect, it } from "vitest";
import type { HistoryDevice } from "../../../api/types.gen";
import { testStacks, TRAINING } from "../../../model/stacks/test_stacks";
import { BlockAxis } from "../../../widgets/block_stack/axis";
import { testDevice, testTile } from "../../../widgets/block_stack/test_tile";
import type { BlockStage } from "../../../widgets/block_stack/stage";
import type { DrawnMarks } from "../../../widgets/block_stack/marks";
import { readState } from "../../shared/page_state";
import { blockActions, blockCommands, type ActionsOf } from "./actions";
import { foundWords, searchOf } from "./search";
import { BLOCKS, orderOf, ordersOf, whyUntimed } from "./state";
import { topOf } from "./use_blocks";

const stacks = testStacks(TRAINING);

describe("the axis of time", () => {
  const device = testDevice();
  const between = (firstMs: number | null, lastMs: number | null): HistoryDevice => ({
    ...device,
    firstMs,
    lastMs,
  });

  it.each([
    ["ascending times", device, ""],
    ["no times", { ...device, hasTimes: false }, "does not say when"],
    ["no event", between(null, null), "does not say when"],
    ["a clock that was set back", between(1100, 1000), "goes back"],
    ["one time for all", between(1000, 1000), "the same time"],
  ])("is there, or it is said why not: %s", (_, timedDevice, text) => {
    const why = whyUntimed(timedDevice);
    expect(why).toContain(text);
    // Said exactly where the picture falls back to events.
    expect(new BlockAxis(timedDevice, "time").kind).toBe(why === "" ? "time" : "event");
  });
});

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

describe("what a search says", () => {
  const tile = testTile();

  it("counts what is drawn, or says why nothing is", () => {
    const textsOf = (typed: string) =>
      foundWords(tile, searchOf(typed, stacks), "auto");
    expect(textsOf(">40").short).toBe("2 drawn");
    expect(textsOf(">4000").long).toContain("below 10 B are too thin");
    expect(textsOf(">x").long).toContain("is no size");
    expect(textsOf("").short).toBe("");
  });
});

describe("commands", () => {
  it("have each key once, and say in words what they do", () => {
    // Nothing is run here.
    const actions = {} as ReturnType<typeof blockActions>;
    const commands = blockCommands({ view: {} } as ActionsOf, actions, []);
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

function actionsAt(params: Readonly<Record<string, string>>) {
  const messages: string[] = [];
  const set: Readonly<Record<string, string | null>>[] = [];
  const pages: [string, Readonly<Record<string, string | null>>][] = [];
  const hovered = { peek: () => null };
  const stage = { hovered, reveal: () => null, clearCursor: () => null };
  const marks: DrawnMarks = {
    points: [point("snapshot", 2), point("oom", 5), point("oom", 9)],
    spans: [],
    numRows: 0,
  };
  const actions = blockActions({
    view: {
      say: (sentence) => messages.push(sentence),
      setParams: (changes) => set.push(changes),
      showPage: (name, changes) => pages.push([name, changes]),
    },
    state: readState(BLOCKS, new Map(Object.entries(params))),
    momentPlace: { history: "h", device: testDevice() },
    marks,
    anchor: 4,
    stage: stage as unknown as BlockStage,
  });
  return { actions, messages, set, pages };
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
