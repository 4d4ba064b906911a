import { describe, expect, it } from "vitest";
import { drawGrid } from "./grid";
import type { Viewport } from "../viewport";
import { createRaster, NO_ID } from "./raster";

const BACKGROUND = 0xff010203;
const HATCH = 0xfffefefe;
/** Colour v says value v, so a pixel can be read back. */
const LUT = Uint32Array.from({ length: 65536 }, (_, value) => value);
const COLOURS = { lut: LUT, absentAccent: HATCH };

/** A reproducible sequence in [0, 1). */
function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function grid(values: Uint16Array, columns: number, rows: number) {
  return { values, columns, rows, x0: 0, columnWidth: 1, y0: 0, rowHeight: 1 };
}

describe("drawGrid", () => {
  it("shows a single peak at every zoom that contains it, and picks it", () => {
    const [columns, rows] = [1000, 600];
    const values = new Uint16Array(columns * rows).fill(10);
    const [peakColumn, peakRow] = [777, 123];
    values[peakRow * columns + peakColumn] = 60000;
    const scene = grid(values, columns, rows);
    const views: Viewport[] = [
      { x0: 0, x1: columns, y0: 0, y1: rows },
      { x0: 13, x1: 991, y0: 7, y1: 555 },
      { x0: 700, x1: 800, y0: 0, y1: rows },
      { x0: 0, x1: columns, y0: 120, y1: 130 },
      { x0: 776, x1: 779, y0: 122, y1: 125 },
    ];
    for (const view of views) {
      const raster = createRaster(97, 61, BACKGROUND);
      drawGrid(raster, view, scene, COLOURS, 5);
      const index = raster.pixels.indexOf(60000);
      expect(index).toBeGreaterThanOrEqual(0);
      expect((raster.ids[index] ?? NO_ID) - 5).toBe(peakRow * columns + peakColumn);
    }
  });

  it("draws one pixel a cell exactly as the cells are", () => {
    const [columns, rows] = [50, 40];
    const next = randoms(3);
    const values = Uint16Array.from(
      { length: 2000 },
      () => 1 + Math.floor(next() * 9000),
    );
    const raster = createRaster(columns, rows, BACKGROUND);
    const view = { x0: 0, x1: columns, y0: 0, y1: rows };
    drawGrid(raster, view, grid(values, columns, rows), COLOURS, 0);
    expect([...raster.pixels]).toEqual([...values]);
    expect([...raster.ids]).toEqual([...values.keys()]);
  });

  it("shows the highest of the cells a pixel covers, at the same place in any view", () => {
    const [columns, rows] = [300, 200];
    const next = randoms(11);
    const values = Uint16Array.from(
      { length: columns * rows },
      () => 1 + Math.floor(next() * 60000),
    );
    const raster = createRaster(100, 50, BACKGROUND);
    // 3 columns and 4 rows a pixel.
    const view = { x0: 0, x1: columns, y0: 0, y1: rows };
    drawGrid(raster, view, grid(values, columns, rows), COLOURS, 0);
    for (const [x, y] of [
      [0, 0],
      [17, 31],
      [99, 49],
    ] as const) {
      let highest = 0;
      for (let row = y * 4; row < y * 4 + 4; row += 1) {
        const from = row * columns + x * 3;
        highest = Math.max(highest, ...values.subarray(from, from + 3));
      }
      expect(raster.pixels[y * 100 + x]).toBe(highest);
    }
  });

  it("hatches what was not recorded and leaves what is outside alone", () => {
    const values = new Uint16Array(20 * 20);
    values[0] = 500;
    const raster = createRaster(60, 40, BACKGROUND);
    drawGrid(
      raster,
      { x0: -20, x1: 40, y0: 0, y1: 40 },
      grid(values, 20, 20),
      COLOURS,
      0,
    );
    expect(raster.pixels[0]).toBe(BACKGROUND);
    expect(raster.ids[0]).toBe(NO_ID);
    expect(raster.pixels[20]).toBe(500);
    const cells = [...raster.pixels.slice(60 + 20, 60 + 40)];
    expect(cells.filter((pixel) => pixel === HATCH).length).toBeGreaterThan(1);
    expect(cells.filter((pixel) => pixel === 0).length).toBeGreaterThan(10);
    expect(raster.pixels[39 * 60 + 30]).toBe(BACKGROUND);
  });
});
