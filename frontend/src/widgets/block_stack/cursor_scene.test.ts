import { describe, expect, it } from "vitest";
import { cursorScene, type CursorView } from "./cursor_scene";
import type { BlockHover, BlockInputs } from "./inputs";
import { testTile } from "./test_tile";

const tile = testTile();
const view: CursorView = {
  view: { x0: 100, x1: 300, y0: 1000, y1: 0 },
  size: { widthPx: 400, heightPx: 50 },
  tile,
  hover: null,
  box: null,
};

type Inputs = Pick<BlockInputs, "life" | "stack" | "scene" | "range" | "cursorText">;

function sceneOf(inputs: Partial<Inputs>, changes: Partial<CursorView> = {}) {
  const nothing = { points: [], spans: [], numRows: 0 };
  const scene = {
    theme: "light",
    byteUnit: "auto",
    marks: nothing,
    capacityBytes: null,
    showReserved: false,
    labelColour: () => null,
    pinnedX: null,
    markedX: null,
  } as const;
  return cursorScene(
    {
      life: null,
      stack: null,
      scene,
      range: null,
      cursorText: ({ moment }) => `at ${moment}`,
      ...inputs,
    },
    { ...view, ...changes },
  );
}

function hoverOf(slot: number): BlockHover {
  const at = { x: 0, y: 0 };
  return {
    ...{ at, x: 150, tile, column: 0, moment: 3, rest: null },
    block: tile.factsOf(slot),
  };
}

describe("what the cursor shows", () => {
  it("outlines what is pointed at before what is pinned", () => {
    const pinned = tile.factsOf(0);
    expect(sceneOf({ life: pinned.life }).slot).toBe(0);
    const both = sceneOf({ life: pinned.life }, { hover: hoverOf(1) });
    expect(both).toMatchObject({ slot: 1, x: 150, text: "at 3" });
    expect(both.stack).toBe(tile.factsOf(1).stack);
  });

  it("lights a chosen stack while nothing is pointed at, and none below 0", () => {
    expect(sceneOf({ stack: 4 }).stack).toBe(4);
    expect(sceneOf({ stack: -1 }).stack).toBeNull();
    expect(sceneOf({}).slot).toBeNull();
  });

  it("places a chosen range in px, and one that is being drawn before it", () => {
    const range = { low: 150, high: 200 };
    expect(sceneOf({ range }).range).toEqual({ x: 100, y: 0, width: 100, height: 50 });
    const box = { x: 1, y: 2, width: 3, height: 4 };
    expect(sceneOf({ range }, { box }).range).toBe(box);
  });
});
