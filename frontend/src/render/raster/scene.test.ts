import { describe, expect, it } from "vitest";
import { pickId } from "./raster";
import type { Layer } from "./scene";
import { moved, resolvePick, Scene } from "./scene";

const SIZE = { widthPx: 40, heightPx: 20 };
const VIEW = { x0: 0, x1: 40, y0: 0, y1: 20 };

const CELLS = { lut: new Uint32Array(65536).fill(0xff00ff00), absentAccent: 0 };
const COLOURS = {
  background: 0xffffffff,
  cells: new Map(["overview", "detail", "cells"].map((name) => [name, CELLS])),
};

function gridLayer(x0: number, columns: number, value: number) {
  const values = new Uint16Array(columns * 20).fill(value);
  return {
    kind: "grid" as const,
    grid: { values, columns, rows: 20, x0, columnWidth: 1, y0: 0, rowHeight: 1 },
  };
}

describe("Scene", () => {
  it("draws finer layers over coarser ones and tells whose pixel is whose", () => {
    const scene = new Scene();
    scene.setColours(COLOURS);
    scene.setLayer("detail", 1, gridLayer(10, 5, 9));
    scene.setLayer("overview", 0, gridLayer(0, 40, 3));
    const { ids, spans } = scene.draw(VIEW, SIZE);
    const pickAt = (x: number, y: number) =>
      resolvePick(spans, pickId(ids, SIZE.widthPx, SIZE.heightPx, x, y));
    expect(pickAt(9, 4)).toEqual({ layer: "overview", id: 4 * 40 + 9 });
    expect(pickAt(12, 19)).toEqual({ layer: "detail", id: 19 * 5 + 2 });
  });

  it("mixes quads and grids in one id space", () => {
    const scene = new Scene();
    scene.setColours(COLOURS);
    scene.setLayer("cells", 0, gridLayer(0, 40, 3));
    scene.setLayer("blocks", 1, {
      kind: "quads",
      quads: {
        x0: Float64Array.of(0),
        x1: Float64Array.of(2),
        y0: Float64Array.of(0),
        y1: Float64Array.of(2),
        colour: Uint32Array.of(0xff00ff00),
      },
    });
    const { ids, spans } = scene.draw(VIEW, SIZE);
    const first = resolvePick(spans, ids[0] ?? -1);
    expect(first).toEqual({ layer: "blocks", id: 0 });
    expect(resolvePick(spans, ids[3] ?? -1)?.layer).toBe("cells");
  });

  it("skips what a grid above hides wholly, and only that", () => {
    const scene = new Scene();
    scene.setColours(COLOURS);
    scene.setLayer("overview", 0, gridLayer(0, 40, 3));
    scene.setLayer("detail", 1, gridLayer(10, 5, 9));
    const drawn = (view: typeof VIEW) =>
      scene.draw(view, SIZE).spans.map((span) => span.layer);
    expect(drawn({ x0: 10, x1: 15, y0: 2, y1: 18 })).toEqual(["detail"]);
    expect(drawn({ x0: 9.9, x1: 15, y0: 2, y1: 18 })).toEqual(["overview", "detail"]);
  });

  it("shows the background where a removed layer was", () => {
    const scene = new Scene();
    scene.setColours(COLOURS);
    scene.setLayer("cells", 0, gridLayer(0, 40, 3));
    scene.setLayer("cells", 0, null);
    const { ids, spans } = scene.draw(VIEW, SIZE);
    expect(spans).toEqual([]);
    expect(resolvePick(spans, ids[0] ?? 0)).toBeNull();
  });
});

describe("layers that move", () => {
  const f64 = (...values: number[]) => Float64Array.from(values);
  const shared = f64(1, 2, 3, 4);
  const layers: readonly Layer[] = [
    gridLayer(0, 2, 7),
    {
      kind: "quads",
      quads: {
        x0: f64(0),
        x1: f64(1),
        y0: f64(0),
        y1: f64(1),
        colour: Uint32Array.of(9),
        seam: 5,
      },
    },
    {
      kind: "runs",
      runs: {
        edges: f64(0, 1, 2),
        slot: Int32Array.of(0),
        first: Uint16Array.of(0),
        last: Uint16Array.of(1),
        offset: f64(0),
        size: f64(8),
        band: Uint16Array.of(0),
        // Parts of one body, as answers may be.
        below: shared.subarray(0, 2),
        height: shared.subarray(2),
        rest: f64(0, 0),
        yLow: 0,
        yHigh: 10,
      },
    },
  ];

  it.each(layers)("are copied whole, into memory of their own: $kind", (layer) => {
    const own: ArrayBuffer[] = [];
    const copy = moved(layer, own);
    expect(copy).toEqual(layer);
    const first = layer.kind === "runs" ? layer.runs.edges : null;
    if (first !== null) expect(own).not.toContain(first.buffer);
    // What moves is gone here, and whole there.
    expect(structuredClone(copy, { transfer: own })).toEqual(layer);
    expect(own.every(({ byteLength }) => byteLength === 0)).toBe(true);
  });
});
