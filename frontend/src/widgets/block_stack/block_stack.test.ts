import { describe, expect, it } from "vitest";
import { pixelOf } from "../../render/palette";
import type { SizePx, Viewport } from "../../render/viewport";
import { atMoment, BlockAxis, momentText } from "./axis";
import { groupColours, groupLabel, inkOn, NO_LINES, runColours } from "./paint/colours";
import { blockFigure, blockTable, seenSlots } from "./figure";
import { fitting } from "../plot/canvas";
import { directLabels } from "./paint/labels";
import { drawnMarks, nextMark, rangeAround, spansAt } from "./marks";
import { blockRects, chosenRange, litBy } from "./paint/cursor";
import { GUTTER } from "./paint/paint";
import { freedText } from "./block_stack";
import {
  testDevice,
  testGroup,
  testPicture,
  testTile,
  tileAnswer,
  WHOLE,
} from "./test_tile";
import { BlockTile } from "./tile";

const VIEW: Viewport = { x0: 0, x1: 10, y0: 200, y1: 0 };
const SIZE: SizePx = { widthPx: 1000, heightPx: 400 };

const PICTURE = testPicture();

describe("the axis", () => {
  const events = new BlockAxis(testDevice(), "event");
  const times = new BlockAxis(testDevice(), "time");

  it("stands an event in the middle of its room, and what was before at the begin", () => {
    expect(events.high).toBe(10);
    expect([-1, 0, 9].map((moment) => events.xOf(moment))).toEqual([0, 0.5, 9.5]);
    expect(events.xAfter(3)).toBe(4);
    expect(events.momentAt(9.99)).toBe(9);
    expect(events.momentAt(10)).toBe(9);
  });

  it("knows times between the points of the curve, both ways", () => {
    expect(times.high).toBe(100);
    expect(times.xOf(5)).toBe(50);
    expect(times.momentAt(50)).toBe(5);
    expect(times.xOf(9)).toBe(100);
    expect(events.msOf(2)).toBe(10);
  });

  it("falls back to events where the file has no times", () => {
    const untimed = { ...testDevice(), hasTimes: false };
    expect(new BlockAxis(untimed, "time").kind).toBe("event");
  });

  it("does not go back where a clock did", () => {
    const device = testDevice();
    const timeMs = Float64Array.of(1000, 1050, 1020, 1080, 1090);
    const axis = new BlockAxis(
      { ...device, curve: { ...device.curve, timeMs } },
      "time",
    );
    expect(axis.xOf(4)).toBe(50);
  });

  it("says moments in words", () => {
    expect(momentText(1203441)).toBe("event 1,203,441");
    expect(atMoment(7)).toBe("at event 7");
    expect(atMoment(-1)).toBe("before the first event");
  });
});

describe("a tile", () => {
  const tile = testTile();

  it("finds the column at x and the one that shows a moment", () => {
    expect([0, 0.99, 1, 9.5, 10].map((x) => tile.columnAt(x))).toEqual([0, 0, 1, 9, 9]);
    expect(tile.columnAt(-0.1)).toBe(-1);
    expect(tile.columnOf(4)).toBe(4);
    expect(tile.columnOf(-1)).toBe(0);
    expect(tile.columnOf(99)).toBe(9);
  });

  it("lists a column's blocks from below upwards, and knows where they lie", () => {
    expect(tile.runsAt(4)).toEqual([0, 1, 2]);
    expect(tile.runsAt(9)).toEqual([0]);
    expect(tile.middleOfRun(2, 4)).toBe(165);
  });

  it("gives its blocks' memory back, and goes on to say what its columns hold", () => {
    const spent = testTile();
    const { columns, lives } = spent.answer;
    const beside = new Int32Array(new ArrayBuffer(24), 8, 3);
    (lives as { born: Int32Array }).born = beside;
    expect(spent.slotsOf(3)).toHaveLength(2);
    spent.free();
    spent.free();
    const frees = "transfer" in ArrayBuffer.prototype;
    expect(spent.numRuns).toBe(frees ? 0 : 3);
    expect(spent.slotsOf(3)).toHaveLength(frees ? 0 : 2);
    expect(beside).toHaveLength(3);
    expect(columns.active[4]).toBe(180);
    expect(spent.columnAt(9.5)).toBe(9);
  });

  it("finds blocks by stack and by allocation", () => {
    expect([...tile.slotsOf(3)]).toEqual([1, 2]);
    expect([...tile.slotsOf(4)]).toEqual([]);
    expect(tile.slotOf(9)).toBe(2);
    expect(tile.slotOf(8)).toBe(-1);
    expect(tile.factsOf(1)).toMatchObject({ life: 7, size: 50, born: 2, gone: 8 });
  });

  it("knows the bytes of each colour, also where colours are not stacked", () => {
    expect([...tile.bytesOf(1)]).toEqual([0, 0, 50, 50, 80, 80, 50, 50, 0, 8]);
    const groupBytes = Float64Array.from({ length: 20 }, (_, i) => i);
    const other = new BlockTile({ ...tileAnswer(), groupBytes }, WHOLE, "module");
    expect([...other.bytesOf(1)]).toEqual([...groupBytes.subarray(10)]);
  });

  it("has one rectangle for each level part of a block", () => {
    expect(blockRects(tile, VIEW, SIZE, 2)).toEqual([
      { x: 400, y: 40, width: 200, height: 60 },
    ]);
    expect(blockRects(tile, { ...VIEW, x0: 8 }, SIZE, 2)).toEqual([]);
  });
});

describe("colours", () => {
  const tile = testTile();
  const { groups } = tile.answer;

  it("are the categories' own, and otherwise one for each place", () => {
    expect(groupColours("light", groups, "category", NO_LINES)).toEqual([
      "#425ed4",
      "#065721",
    ]);
    const lines = ["a.py:1", "b.py:2", "others"].map((key) => testGroup(key, null));
    const colours = groupColours("light", lines, "stack", NO_LINES);
    expect(new Set(colours).size).toBe(3);
    expect(colours[2]).toBe("#8a8f98");
  });

  it("of ages run from old to young in one order", () => {
    const ages = ["before", "over 1 s", "under 1 s"].map((key) => testGroup(key, null));
    const [before, old, young] = groupColours("dark", ages, "age", NO_LINES);
    expect(before).toBe("#9a9fa8");
    expect(old).not.toBe(young);
  });

  it("of blocks that are not looked at fade into the page", () => {
    const look = { ...PICTURE, matches: null };
    const all = runColours(tile, look);
    const searched = { ...look, matches: (_: unknown, slot: number) => slot === 0 };
    const some = runColours(tile, searched);
    expect(some.bySlot[0]).toBe(all.bySlot[0]);
    expect(some.bySlot[1]).not.toBe(all.bySlot[1]);
    expect((some.bySlot[1] ?? 0) & 255).toBeGreaterThan(200);
    expect(all.edge).toBe(pixelOf("#ffffff"));
  });

  it("carry the text that is read better on them", () => {
    expect(inkOn("#065721")).toBe("#ffffff");
    expect(inkOn("#e7ad51")).toBe("#212121");
  });

  it("have the categories' words", () => {
    expect(groupLabel(testGroup("param", "param"))).toBe("Params");
    expect(groupLabel(testGroup("a.py:1 f", null))).toBe("a.py:1 f");
  });
});

describe("direct labels", () => {
  const names = {
    band: (band: number) => ["Params", "Activations"][band] ?? "",
    block: (slot: number) => `block ${slot}`,
    widthOf: (text: string) => text.length * 7,
  };

  it("stand inside their band and block, and never on each other", () => {
    const labels = directLabels({ tile: testTile(), view: VIEW, size: SIZE }, names);
    const params = labels.find(({ text }) => text === "Params");
    expect(params?.y).toBeGreaterThan(0);
    expect(params?.y).toBeLessThan(100);
    const activations = labels.find(({ text }) => text === "Activations");
    expect(activations?.x).toBeGreaterThan(2);
    expect(activations?.x).toBeLessThan(8);
    const third = labels.find(({ text }) => text === "block 2");
    expect(third).toMatchObject({ kind: "block", x: 5, y: 165 });
  });

  it("are left out where there is no room, and cut where there is little", () => {
    const flat = directLabels(
      { tile: testTile(), view: { ...VIEW, y0: 100000 }, size: SIZE },
      names,
    );
    expect(flat).toEqual([]);
    const widthOf = (text: string): number => text.length * 10;
    expect(fitting("a long name", 60, widthOf)).toBe("a lon…");
    expect(fitting("a long name", 30, widthOf)).toBe("");
    expect(fitting("short", 60, widthOf)).toBe("short");
  });
});

describe("marks", () => {
  const kinds = ["oom", "snapshot", "annotation", "step", "tag"] as const;
  const of = (
    rows: readonly (readonly [kind: number, from: number, to: number])[],
  ) => ({
    kind: Uint8Array.from(rows, ([kind]) => kind),
    kinds,
    moment: Int32Array.from(rows, ([, from]) => from),
    end: Int32Array.from(rows, ([, , to]) => to),
    label: Int32Array.from(rows, (_, i) => i),
    labels: rows.map((_, i) => `mark ${i}`),
    bytes: Float64Array.from(rows, () => 64),
    deviceFree: Float64Array.from(rows, () => NaN),
    step: Float64Array.from(rows, () => NaN),
    numMarks: rows.length,
  });
  const axis = new BlockAxis(testDevice(), "event");
  const marks = drawnMarks(
    of([
      [3, -1, 4],
      [3, 4, 9],
      [2, 1, 3],
      [2, 1, 2],
      [0, 6, 6],
    ]),
    axis,
  );

  it("stand steps above annotations, and what is inside another below it", () => {
    expect(marks.points).toHaveLength(1);
    expect(marks.points[0]).toMatchObject({
      kind: "oom",
      moment: 6,
      x: 6.5,
      bytes: 64,
    });
    const rows = marks.spans.map(({ label, row, x0, x1 }) => [label, row, x0, x1]);
    expect(rows).toEqual([
      ["mark 0", 0, 0, 5],
      ["mark 1", 0, 5, 10],
      ["mark 2", 1, 2, 4],
      ["mark 3", 2, 2, 3],
    ]);
    expect(marks.numRows).toBe(3);
  });

  it("lead from one to the next", () => {
    expect(nextMark(marks, 3, 1)).toBe(5);
    expect(nextMark(marks, 5, 1)).toBe(6);
    expect(nextMark(marks, 6, 1)).toBeNull();
    expect(nextMark(marks, 6, -1)).toBe(5);
    expect(nextMark(marks, 0, -1)).toBeNull();
  });

  it("choose the events of the step around a moment, else a tenth around it", () => {
    const span = { x0: 0, x1: 0, row: 0, label: "step 3" };
    const steps = [{ ...span, kind: "step" as const, moment: 99, end: 199 }];
    const marks = { points: [], spans: steps, numRows: 1 };
    expect(rangeAround(marks, 150, 1000)).toEqual({ low: 100, high: 200 });
    expect(rangeAround(marks, 500, 1000)).toEqual({ low: 450, high: 550 });
    expect(rangeAround(marks, -1, 1000)).toEqual({ low: 0, high: 100 });
    expect(rangeAround(marks, 999, 1000)).toEqual({ low: 900, high: 1000 });
    expect(rangeAround(marks, 0, 1)).toEqual({ low: 0, high: 1 });
  });

  it("name what is under way at x", () => {
    expect(spansAt(marks, 2.5).map(({ label }) => label)).toEqual([
      "mark 0",
      "mark 2",
      "mark 3",
    ]);
    expect(spansAt(marks, 7).map(({ label }) => label)).toEqual(["mark 1"]);
  });

  it("of a part come to those of the whole, each once and in order", () => {
    const whole = {
      ...of([
        [3, -1, 2],
        [2, 6, 9],
        [0, 8, 8],
      ]),
      numMarks: 5,
    };
    const part = {
      ...of([
        [3, 2, 5],
        [0, 4, 4],
        [2, 6, 9],
        [0, 8, 8],
      ]),
      labels: ["step 2", "early", "mark 1", "mark 2"],
    };
    const drawn = drawnMarks(whole, axis, part);
    expect(drawn.points.map(({ moment }) => moment)).toEqual([4, 8]);
    expect(drawn.spans.map(({ label }) => label)).toEqual([
      "mark 0",
      "step 2",
      "mark 1",
    ]);
  });

  it("keep their rows where each part brings others", () => {
    const rows = (from: readonly (readonly [number, number, number])[]) =>
      drawnMarks({ ...of(from), numMarks: 9 }, axis).numRows;
    expect(rows([[3, 0, 2]])).toBe(1);
    expect(rows([[2, 0, 2]])).toBe(4);
  });
});

describe("the card", () =>
  it("tells when a block was freed, and whether it had to wait", () => {
    expect(freedText({ born: 2, freed: 8, gone: 8 }, 10)).toBe(
      "event 8, after 6 events",
    );
    expect(freedText({ born: 2, freed: 6, gone: 8 }, 10)).toBe(
      "event 8, after 6 events (requested at 6)",
    );
    expect(freedText({ born: -1, freed: 8, gone: 8 }, 10)).toBe("event 8");
    expect(freedText({ born: 2, freed: 10, gone: 10 }, 10)).toBe(
      "still live at the end",
    );
    expect(freedText({ born: 2, freed: 6, gone: 10 }, 10)).toBe(
      "free requested, not completed by the end",
    );
  }));

describe("files", () => {
  const tile = testTile();

  it("list the blocks in sight, the largest first, and those searched for alone", () => {
    expect(seenSlots(tile, VIEW)).toEqual([0, 1, 2]);
    expect(seenSlots(tile, { ...VIEW, x0: 8 })).toEqual([0]);
    const table = blockTable(tile, VIEW, {
      stacks: null,
      matches: (_, slot) => slot > 0,
    });
    expect(table.numRows).toBe(2);
    const column = (name: string) =>
      table.columns.find((candidate) => candidate.name === name)?.values;
    expect([...(column("size_bytes") as Float64Array)]).toEqual([50, 30]);
    expect(column("group")).toEqual(["Activations", "Activations"]);
  });

  it("draw axes, lines and marks beside the embedded picture", () => {
    const { svg } = blockFigure(
      "Active <memory>",
      {
        of: PICTURE,
        view: { ...VIEW, y0: 320 },
        size: SIZE,
        tile,
        labels: [],
        left: GUTTER.left,
        top: GUTTER.top,
      },
      tile,
      "data:image/png;base64,AAAA",
    );
    expect(svg).toContain("Active &lt;memory&gt;");
    expect(svg).toContain("device 300 B");
    expect(svg).toContain("data:image/png;base64,AAAA");
    expect(svg).toContain(">Params<");
  });
});

describe("what the cursor shows", () => {
  const tile = testTile();
  const hover = {
    point: { x: 0, y: 0 },
    x: 150,
    tile,
    column: 0,
    moment: 3,
    rest: null,
    block: tile.factsOf(1),
  };

  it("is what is pointed at before what is pinned, and all of its stack", () => {
    const pinned = { life: tile.factsOf(0).life, stack: null };
    expect(litBy(pinned, tile, null).slot).toBe(0);
    expect(litBy(pinned, tile, hover)).toEqual({ slot: 1, stack: hover.block.stack });
  });

  it("is a chosen stack while nothing is pointed at, and none without one", () => {
    expect(litBy({ life: null, stack: 4 }, tile, null).stack).toBe(4);
    expect(litBy({ life: null, stack: null }, tile, null)).toEqual({
      slot: -1,
      stack: -1,
    });
  });

  it("has a chosen range in px", () => {
    const of = { ...PICTURE, range: { low: 1, high: 3 } };
    expect(chosenRange({ of, view: VIEW, size: SIZE })).toEqual({
      x: 100,
      y: 0,
      width: 200,
      height: 400,
    });
  });
});
