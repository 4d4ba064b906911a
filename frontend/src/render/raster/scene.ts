import type { SizePx, Viewport } from "../viewport";
import { drawGrid, gridFills, type CellColours, type Grid } from "./grid";
import { createRaster, drawQuads, NO_ID, type Quads, type Raster } from "./raster";
import { drawRuns, numRunIds, runsFill, type RunColours, type Runs } from "./runs";

export type Layer =
  | { readonly kind: "grid"; readonly grid: Grid }
  | { readonly kind: "quads"; readonly quads: Quads }
  | { readonly kind: "runs"; readonly runs: Runs };

/** Copies arrays and adds the copies' buffers to `buffers`, for a transfer. */
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

/** By layer; grids and runs without colours are not drawn. */
export interface SceneColours {
  readonly background: number;
  readonly cells?: ReadonlyMap<string, CellColours>;
  readonly runs?: ReadonlyMap<string, RunColours>;
}

interface IdSpan {
  readonly layer: string;
  readonly firstId: number;
  readonly numIds: number;
}

export interface Drawing {
  readonly view: Viewport;
  readonly size: SizePx;
  /** Owned by the scene: valid until its next drawing. */
  readonly pixels: Uint32Array<ArrayBuffer>;
  readonly ids: Int32Array<ArrayBuffer>;
  readonly spans: readonly IdSpan[];
}

/** `id`: a grid's cell (row-major), a quad's row, or the input of `runPick`. */
export interface Pick {
  readonly layer: string;
  readonly id: number;
}

interface Drawable {
  readonly layer: string;
  readonly numIds: number;
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
  /** Reused: a new buffer per frame would be megabytes of garbage. */
  #pixels: Uint32Array<ArrayBuffer> | null = null;

  /** null removes the layer; higher orders are drawn on top. */
  setLayer(name: string, order: number, layer: Layer | null): void {
    if (layer === null) this.#layers.delete(name);
    else this.#layers.set(name, { order, layer });
  }

  setColours(colours: SceneColours): void {
    this.#colours = colours;
  }

  /** `reuse`: an id buffer of an earlier drawing that is no longer read. */
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
    // Layers below one that fills the view are not visible.
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

export function resolvePick(spans: readonly IdSpan[], id: number): Pick | null {
  if (id === NO_ID) return null;
  const span = spans.find(
    ({ firstId, numIds }) => id >= firstId && id < firstId + numIds,
  );
  return span === undefined ? null : { layer: span.layer, id: id - span.firstId };
}
