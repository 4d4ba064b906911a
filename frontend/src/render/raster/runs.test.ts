import { describe, expect, test } from "vitest";
import { createRaster, NO_ID, pickId } from "./raster";
import {
  drawRuns,
  numRunIds,
  runBelow,
  runPick,
  runsFill,
  stackedBelow,
  type RunColours,
  type Runs,
} from "./runs";
import type { Viewport } from "../viewport";

const BG = 0;
const RED = 0xff0000ff;
const GREEN = 0xff00ff00;
const BLUE = 0xffff0000;
const COLOURS: RunColours = {
  bySlot: Uint32Array.of(RED, GREEN),
  byBand: Uint32Array.of(BLUE, BLUE),
  edge: 0xff000000,
};

/** Two bands over four columns: a block in each; the lower band grows in column 2. */
function twoBands(): Runs {
  const height = Float64Array.of(1, 1, 3, 3, 2, 2, 2, 3);
  return {
    edges: Float64Array.of(0, 1, 2, 3, 4),
    slot: Int32Array.of(0, 1),
    first: Uint16Array.of(0, 1),
    last: Uint16Array.of(3, 3),
    offset: Float64Array.of(0, 0),
    size: Float64Array.of(1, 2),
    band: Uint16Array.of(0, 1),
    below: stackedBelow(height, 4),
    height,
    rest: Float64Array.of(0, 0, 2, 2, 2, 0, 0, 1),
    yLow: 0,
    yHigh: 10,
  };
}

/** One px a unit both ways, y upwards. */
const VIEW: Viewport = { x0: 0, x1: 4, y0: 6, y1: 0 };

function drawn(runs: Runs, view: Viewport = VIEW, widthPx = 4, heightPx = 6) {
  const raster = createRaster(widthPx, heightPx, BG);
  drawRuns(raster, view, runs, COLOURS, 0, BG);
  const idAt = (x: number, y: number): number =>
    pickId(raster.ids, widthPx, heightPx, x, heightPx - 1 - y);
  return { raster, idAt };
}

describe("runs", () => {
  test("bands lie upon each other, column by column", () => {
    expect([...twoBands().below]).toEqual([0, 0, 0, 0, 1, 1, 3, 3]);
    expect(runBelow(twoBands(), 1, 1)).toBe(1);
    expect(runBelow(twoBands(), 1, 2)).toBe(3);
  });

  test("every pixel of the stack knows its block, the rest its band and column", () => {
    const runs = twoBands();
    const { idAt } = drawn(runs);
    expect([0, 1, 2, 3].map((x) => idAt(x, 0))).toEqual([0, 0, 0, 0]);
    // The second block begins in column 1 and is lifted in column 2.
    expect(idAt(1, 1)).toBe(1);
    expect(idAt(1, 2)).toBe(1);
    expect(idAt(2, 3)).toBe(1);
    expect(idAt(2, 4)).toBe(1);
    expect(runPick(runs, idAt(2, 1))).toEqual({ kind: "rest", band: 0, column: 2 });
    expect(runPick(runs, idAt(0, 2))).toEqual({ kind: "rest", band: 1, column: 0 });
    expect(runPick(runs, idAt(3, 5))).toEqual({ kind: "rest", band: 1, column: 3 });
    expect(idAt(0, 3)).toBe(NO_ID);
    expect(numRunIds(runs)).toBe(10);
  });

  test("tall blocks have an edge at the top and where they begin, short ones do not", () => {
    const { raster } = drawn(twoBands(), VIEW, 40, 60);
    const pixel = (x: number, y: number): number =>
      raster.pixels[(59 - y) * 40 + x] ?? 0;
    // 0xff00ff00 halfway to black.
    const edge = 0xff007f00;
    expect(pixel(15, 29)).toBe(edge);
    expect(pixel(15, 28)).toBe(GREEN);
    expect(pixel(10, 20)).toBe(edge);
    const small = drawn(twoBands());
    expect(new Set(small.raster.pixels).has(edge)).toBe(false);
  });

  test("a zoomed view shows the same blocks where they are", () => {
    const { idAt } = drawn(twoBands(), { x0: 2, x1: 3, y0: 5, y1: 3 }, 10, 10);
    expect(idAt(0, 0)).toBe(1);
    expect(idAt(9, 9)).toBe(1);
  });

  test("what was drawn below it is cleared between yLow and yHigh alone", () => {
    const runs = { ...twoBands(), yHigh: 4 };
    const raster = createRaster(6, 6, BG);
    raster.pixels.fill(RED);
    raster.ids.fill(77);
    drawRuns(raster, { ...VIEW, x1: 6 }, runs, COLOURS, 0, BG);
    const idAt = (x: number, y: number): number => pickId(raster.ids, 6, 6, x, 5 - y);
    expect(idAt(0, 3)).toBe(NO_ID);
    expect(idAt(0, 5)).toBe(77);
    expect(idAt(5, 0)).toBe(77);
  });

  test("a part leaves nothing to the whole where it is all that is in sight", () => {
    const runs = { ...twoBands(), yHigh: 6 };
    expect(runsFill(runs, VIEW)).toBe(true);
    expect(runsFill(runs, { ...VIEW, x1: 4.1 })).toBe(false);
    expect(runsFill(runs, { ...VIEW, y0: 7 })).toBe(false);
    expect(runsFill({ ...runs, edges: new Float64Array(0) }, VIEW)).toBe(false);
  });

  test("an empty picture draws nothing", () => {
    const none = new Float64Array(0);
    const runs: Runs = {
      ...twoBands(),
      edges: none,
      slot: new Int32Array(0),
      below: none,
      height: none,
      rest: none,
    };
    expect(new Set(drawn(runs).raster.ids)).toEqual(new Set([NO_ID]));
  });
});
