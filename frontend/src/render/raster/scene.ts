/**
 * An ordered set of layers, drawn in any viewport. It knows nothing of the page: the same
 * class runs in the worker and in tests.
 */

import type { SizePx, Viewport } from "../viewport";
import { drawGrid, gridFills, type CellColours, type Grid } from "./grid";
import { createRaster, drawQuads, NO_ID, type Quads, type Raster } from "./raster";
import { drawRuns, numRunIds, runsFill, type RunColours, type Runs } from "./runs";

export type Layer =
  | { readonly kind: "grid"; readonly grid: Grid }
  | { readonly kind: "quads"; readonly quads: Quads }
  | { readonly kind: "runs"; readonly runs: Runs };

/** The same, its arrays in memory of their own, which `buffers` gets: it moves with it. */
export function moved<T extends object>(of: T, buffers: ArrayBuffer[]): T {
  const fields = Object.entries(of).map(([key, value]: [string, unknown]) => {
    if (value instanceof Object && !ArrayBuffer.isView(value)) {
      return [key, moved(value, buffers)];
    }
    if (!ArrayBuffer.isView(value)) return [key, value];
    const copy = (value as Uint8Array<ArrayBuffer>).slice();
    buffers.push(copy.buffer);
    return [key, copy];
  });
  return Object.fromEntries(fields) as T;
}

/** By layer; grids and runs without any are not drawn. */
export interface SceneColours {
  readonly background: number;
  readonly cells?: ReadonlyMap<string, CellColours>;
  readonly runs?: ReadonlyMap<string, RunColours>;
}

/** Which ids of a drawing are a layer's. */
export interface IdSpan {
  readonly layer: string;
  readonly firstId: number;
  readonly numIds: number;
}

export interface Drawing {
  readonly view: Viewport;
  readonly size: SizePx;
  /** The scene's own: they hold until its next drawing. */
  readonly pixels: Uint32Array<ArrayBuffer>;
  readonly ids: Int32Array<ArrayBuffer>;
  readonly spans: readonly IdSpan[];
}

/** What a pixel shows: a layer's cell, row by row, its quad, or what `runPick` reads. */
export interface Pick {
  readonly layer: string;
  readonly id: number;
}

interface Drawable {
  readonly layer: string;
  readonly numIds: number;
  /** Whether it leaves nothing of the view to what lies below. */
  readonly fills: boolean;
  readonly draw: (firstId: number) => void;
}

function drawable(
  name: string,
  layer: Layer,
  { background, cells, runs }: SceneColours,
  raster: Raster,
  view: Viewport,
): Drawable | null {
  if (layer.kind === "quads") {
    return {
      layer: name,
      numIds: layer.quads.colour.length,
      fills: false,
      draw: (firstId) => drawQuads(raster, view, layer.quads, firstId),
    };
  }
  if (layer.kind === "grid") {
    const colours = cells?.get(name);
    if (colours === undefined) return null;
    return {
      layer: name,
      numIds: layer.grid.values.length,
      fills: gridFills(layer.grid, view),
      draw: (firstId) => drawGrid(raster, view, layer.grid, colours, firstId),
    };
  }
  const colours = runs?.get(name);
  if (colours === undefined) return null;
  return {
    layer: name,
    numIds: numRunIds(layer.runs),
    fills: runsFill(layer.runs, view),
    draw: (firstId) => drawRuns(raster, view, layer.runs, colours, firstId, background),
  };
}

export class Scene {
  #layers = new Map<string, { readonly order: number; readonly layer: Layer }>();
  #colours: SceneColours = { background: 0xff000000 };
  /** Filled anew at each drawing: megabytes a frame would be left to collect. */
  #pixels: Uint32Array<ArrayBuffer> | null = null;

  /** Add, replace or (null) remove a layer; higher orders are drawn on top. */
  setLayer(name: string, order: number, layer: Layer | null): void {
    if (layer === null) this.#layers.delete(name);
    else this.#layers.set(name, { order, layer });
  }

  setColours(colours: SceneColours): void {
    this.#colours = colours;
  }

  /** `reuse` is an id buffer of an earlier drawing that nobody reads any more. */
  draw(
    view: Viewport,
    size: SizePx,
    reuse: Int32Array<ArrayBuffer> | null = null,
  ): Drawing {
    const { background } = this.#colours;
    const { widthPx, heightPx } = size;
    const raster = createRaster(widthPx, heightPx, background, reuse, this.#pixels);
    this.#pixels = raster.pixels;
    const ordered = [...this.#layers]
      .sort((a, b) => a[1].order - b[1].order)
      .flatMap(
        ([name, { layer }]) => drawable(name, layer, this.#colours, raster, view) ?? [],
      );
    // What lies below a layer that fills the view would be drawn for nothing.
    const lowest = Math.max(
      0,
      ordered.findLastIndex(({ fills }) => fills),
    );
    let firstId = 0;
    const spans = ordered.slice(lowest).map(({ layer, numIds, draw }) => {
      const span = { layer, firstId, numIds };
      draw(firstId);
      firstId += numIds;
      return span;
    });
    return { view, size, pixels: raster.pixels, ids: raster.ids, spans };
  }
}

/** Read an id of a drawing. */
export function resolvePick(spans: readonly IdSpan[], id: number): Pick | null {
  if (id === NO_ID) return null;
  const found = spans.find(
    ({ firstId, numIds }) => id >= firstId && id < firstId + numIds,
  );
  return found === undefined ? null : { layer: found.layer, id: id - found.firstId };
}
