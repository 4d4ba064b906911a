/**
 * A scene is an ordered set of layers and draws any viewport of them. It holds no
 * reference to the page: the same class runs in the worker and, where workers cannot
 * draw, on the main thread.
 */

import type { CellColours, Grid } from "./grid";
import { drawGrid } from "./grid";
import { buildPyramid } from "./pyramid";
import type { Quads } from "./raster";
import { createRaster, drawQuads, NO_ID } from "./raster";
import { drawRuns, numRunIds, runsFill, type RunColours, type Runs } from "./runs";
import type { SizePx, Viewport } from "./viewport";

/** Cells as they travel to the worker; the pyramid is built where they arrive. */
export interface GridLayer {
  readonly kind: "grid";
  readonly values: Uint16Array;
  readonly columns: number;
  readonly rows: number;
  readonly x0: number;
  readonly columnWidth: number;
  readonly y0: number;
  readonly rowHeight: number;
}

export interface QuadLayer {
  readonly kind: "quads";
  readonly quads: Quads;
}

export interface RunLayer {
  readonly kind: "runs";
  readonly runs: Runs;
}

export type Layer = GridLayer | QuadLayer | RunLayer;

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

export interface SceneColours {
  readonly background: number;
  /** By layer: each grid is quantised in its own way. A grid without any is not drawn. */
  readonly cells: ReadonlyMap<string, CellColours>;
  /** By layer, likewise. */
  readonly runs?: ReadonlyMap<string, RunColours>;
}

/** Which ids of a drawing belong to which layer, and how to read them. */
export interface IdSpan {
  readonly layer: string;
  readonly firstId: number;
  readonly numIds: number;
  /** Grids: columns of the level drawn, and how coarse it is; quads and runs: 0. */
  readonly columns: number;
  readonly log2: number;
}

export interface Drawing {
  readonly view: Viewport;
  readonly size: SizePx;
  /** The scene's own: they hold until its next drawing. */
  readonly pixels: Uint32Array<ArrayBuffer>;
  readonly ids: Int32Array<ArrayBuffer>;
  readonly spans: readonly IdSpan[];
}

/** What a pixel shows: a quad's or run's id, or a cell of the level that was drawn. */
export type Pick =
  | { readonly kind: "quad"; readonly layer: string; readonly id: number }
  | {
      readonly kind: "cell";
      readonly layer: string;
      readonly log2: number;
      readonly column: number;
      readonly row: number;
    };

interface Held {
  readonly order: number;
  readonly layer: Layer;
  readonly grid: Grid | null;
}

const DARK: SceneColours = { background: 0xff000000, cells: new Map() };

function gridOf(layer: Layer): Grid | null {
  if (layer.kind !== "grid") return null;
  const { values, columns, rows, x0, columnWidth, y0, rowHeight } = layer;
  const pyramid = buildPyramid(values, columns, rows);
  return { pyramid, x0, columnWidth, y0, rowHeight };
}

/** Whether a grid leaves nothing of a view free, whichever way its axes grow. */
function fills(grid: Grid, view: Viewport): boolean {
  const { columns, rows } = grid.pyramid.base;
  const within = (start: number, end: number, a: number, b: number): boolean =>
    Math.min(start, end) <= Math.min(a, b) && Math.max(start, end) >= Math.max(a, b);
  const right = grid.x0 + columns * grid.columnWidth;
  const bottom = grid.y0 + rows * grid.rowHeight;
  return (
    within(grid.x0, right, view.x0, view.x1) &&
    within(grid.y0, bottom, view.y0, view.y1)
  );
}

export class Scene {
  #layers = new Map<string, Held>();
  #colours = DARK;
  /** Filled anew at each drawing: megabytes a frame would be left to collect. */
  #pixels: Uint32Array<ArrayBuffer> | null = null;

  /** Add, replace or (null) remove a layer; higher orders are drawn on top. */
  setLayer(name: string, order: number, layer: Layer | null): void {
    if (layer === null) this.#layers.delete(name);
    else this.#layers.set(name, { order, layer, grid: gridOf(layer) });
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
    const { background, cells, runs } = this.#colours;
    const { widthPx, heightPx } = size;
    const raster = createRaster(widthPx, heightPx, background, reuse, this.#pixels);
    this.#pixels = raster.pixels;
    const spans: IdSpan[] = [];
    let firstId = 0;
    const ordered = [...this.#layers].sort((a, b) => a[1].order - b[1].order);
    // What lies below a layer that fills the view would be drawn for nothing.
    const lowest = ordered.findLastIndex(([name, { grid, layer }]) =>
      layer.kind === "runs"
        ? runs?.has(name) === true && runsFill(layer.runs, view)
        : grid !== null && cells.has(name) && fills(grid, view),
    );
    for (const [layer, held] of ordered.slice(Math.max(0, lowest))) {
      const colours = cells.get(layer);
      if (held.grid !== null && colours !== undefined) {
        const level = drawGrid(raster, view, held.grid, colours, firstId);
        const numIds = level.columns * level.rows;
        const { columns, log2 } = level;
        spans.push({ layer, firstId, numIds, columns, log2 });
        firstId += numIds;
      } else if (held.layer.kind === "quads") {
        const { quads } = held.layer;
        drawQuads(raster, view, quads, firstId);
        const numIds = quads.id.reduce((most, id) => Math.max(most, id + 1), 0);
        spans.push({ layer, firstId, numIds, columns: 0, log2: 0 });
        firstId += numIds;
      } else if (held.layer.kind === "runs") {
        const painted = runs?.get(layer);
        if (painted === undefined) continue;
        drawRuns(raster, view, held.layer.runs, painted, firstId, background);
        const numIds = numRunIds(held.layer.runs);
        spans.push({ layer, firstId, numIds, columns: 0, log2: 0 });
        firstId += numIds;
      }
    }
    return { view, size, pixels: raster.pixels, ids: raster.ids, spans };
  }
}

/** Read an id of a drawing. */
export function resolvePick(spans: readonly IdSpan[], id: number): Pick | null {
  if (id === NO_ID) return null;
  for (const span of spans) {
    const index = id - span.firstId;
    if (index < 0 || index >= span.numIds) continue;
    const { layer, log2, columns } = span;
    if (columns === 0) return { kind: "quad", layer, id: index };
    const row = Math.floor(index / columns);
    return { kind: "cell", layer, log2, column: index % columns, row };
  }
  return null;
}
