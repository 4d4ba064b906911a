import { describe, expect, it } from "vitest";
import type { Quads } from "./raster";
import { createRaster, drawQuads, NO_ID, pickId } from "./raster";

const VIEW = { x0: 0, x1: 100, y0: 50, y1: 0 };
const RED = 0xff0000ff;
const BLUE = 0xffff0000;
const WHITE = 0xffffffff;

function quads(
  list: readonly (readonly [number, number, number, number, number])[],
): Quads {
  const column = (i: number): Float64Array =>
    Float64Array.from(list, (quad) => quad[i] ?? NaN);
  return {
    x0: column(0),
    x1: column(1),
    y0: column(2),
    y1: column(3),
    colour: Uint32Array.from(list, (quad) => quad[4]),
  };
}

describe("drawQuads", () => {
  it("fills exactly the pixels of the rectangle, y growing upwards", () => {
    const raster = createRaster(100, 50, WHITE);
    drawQuads(raster, VIEW, quads([[10, 20, 0, 5, RED]]), 3);
    const filled = [...raster.ids.keys()].filter((i) => raster.ids[i] === 3);
    expect(filled.length).toBe(50);
    expect(pickId(raster.ids, 100, 50, 10, 49)).toBe(3);
    expect(pickId(raster.ids, 100, 50, 19.9, 45)).toBe(3);
    expect(pickId(raster.ids, 100, 50, 20, 49)).toBe(NO_ID);
    expect(pickId(raster.ids, 100, 50, 15, 44)).toBe(NO_ID);
    expect(filled.every((i) => raster.pixels[i] === RED)).toBe(true);
  });

  it("draws later quads on top", () => {
    const raster = createRaster(100, 50, WHITE);
    drawQuads(
      raster,
      VIEW,
      quads([
        [0, 50, 0, 50, RED],
        [25, 75, 0, 50, BLUE],
      ]),
    );
    expect(pickId(raster.ids, 100, 50, 24, 10)).toBe(0);
    expect(pickId(raster.ids, 100, 50, 25, 10)).toBe(1);
  });

  it("never loses a quad thinner than a pixel, and drops those outside or absent", () => {
    const raster = createRaster(100, 50, WHITE);
    drawQuads(
      raster,
      VIEW,
      quads([
        [33.2, 33.2001, 10, 10.0001, RED],
        [200, 300, 0, 50, RED],
        [NaN, 5, 0, 50, RED],
        [-10, -5, 0, 50, RED],
      ]),
    );
    expect([...raster.ids].filter((id) => id !== NO_ID)).toEqual([0]);
  });

  it("offsets ids, so that several layers share one buffer", () => {
    const raster = createRaster(100, 50, WHITE);
    drawQuads(raster, VIEW, quads([[0, 100, 0, 50, RED]]), 1004);
    expect(raster.ids[0]).toBe(1004);
  });
});

describe("createRaster", () =>
  it("clears an id buffer it reuses, and does not reuse one of another size", () => {
    const spent = new Int32Array(6).fill(42);
    const raster = createRaster(3, 2, WHITE, spent);
    expect(raster.ids).toBe(spent);
    expect([...raster.ids]).toEqual(new Array(6).fill(NO_ID));
    expect(createRaster(4, 2, WHITE, spent).ids).not.toBe(spent);
  }));
