/**
 * Layers stacked over columns of any width: as quads for the raster core, and as outlines
 * for vector drawings. Pure.
 */

import { pixelOf } from "../../render/palette";
import { PATTERN, type Quads } from "../../render/raster";
import type { SizePx, Viewport } from "../../render/viewport";

/** Columns side by side; `edges` has one value more than there are columns. */
export interface Bands {
  readonly edges: ArrayLike<number>;
  /** From the lowest up; what is not above 0 takes no room. */
  readonly layers: readonly ArrayLike<number>[];
}

export interface BandLook {
  readonly colours: readonly string[];
  /** The line at the upper edge of a layer that is thick enough. */
  readonly edge: string;
  readonly edgedPx: number;
  /** Columns narrower than this have no such lines: they would only be specks. */
  readonly linedPx: number;
  /** Columns at least this wide stand apart. */
  readonly apartPx: number;
}

function isSeen({ edges }: Bands, column: number, view: Viewport): boolean {
  return (edges[column + 1] ?? NaN) > view.x0 && (edges[column] ?? NaN) < view.x1;
}

/** One quad per layer and column in sight; a quad's id is its layer. */
export function bandQuads(
  bands: Bands,
  look: BandLook,
  view: Viewport,
  size: SizePx,
): Quads {
  const pixels = look.colours.map(pixelOf);
  const line = pixelOf(look.edge);
  const edged = (look.edgedPx / size.heightPx) * Math.abs(view.y1 - view.y0);
  const perPx = (view.x1 - view.x0) / size.widthPx;
  const rows: [number, number, number, number, number, number][] = [];
  for (let column = 0; column + 1 < bands.edges.length; column += 1) {
    if (!isSeen(bands, column, view)) continue;
    const x0 = bands.edges[column] ?? NaN;
    const end = bands.edges[column + 1] ?? NaN;
    const x1 = end - x0 >= look.apartPx * perPx ? end - perPx : end;
    const lined = end - x0 >= look.linedPx * perPx;
    let base = 0;
    bands.layers.forEach((values, id) => {
      const value = values[column] ?? NaN;
      if (!(value > 0)) return;
      rows.push([x0, x1, base, base + value, pixels[id] ?? 0, id]);
      base += value;
      if (value >= edged && lined) rows.push([x0, x1, base, base, line, id]);
    });
  }
  const column = (at: 0 | 1 | 2 | 3): Float64Array =>
    Float64Array.from(rows, (row) => row[at]);
  return {
    x0: column(0),
    x1: column(1),
    y0: column(2),
    y1: column(3),
    colour: Uint32Array.from(rows, (row) => row[4]),
    id: Int32Array.from(rows, (row) => row[5]),
    pattern: new Uint8Array(rows.length).fill(PATTERN.solid),
  };
}

/** The outline of each layer in px of the plot, as x, y, x, y ...; closed. */
export function bandOutlines(
  { edges, layers }: Bands,
  view: Viewport,
  size: SizePx,
): readonly Float64Array[] {
  const num = Math.max(0, edges.length - 1);
  const base = new Float64Array(num);
  const toX = (x: number): number =>
    ((x - view.x0) / (view.x1 - view.x0)) * size.widthPx;
  const toY = (y: number): number =>
    ((y - view.y0) / (view.y1 - view.y0)) * size.heightPx;
  return layers.map((values) => {
    const points = new Float64Array(8 * num);
    for (let column = 0; column < num; column += 1) {
      const low = base[column] ?? 0;
      const value = values[column] ?? NaN;
      const high = low + (value > 0 ? value : 0);
      const left = toX(edges[column] ?? NaN);
      const right = toX(edges[column + 1] ?? NaN);
      points.set([left, toY(high), right, toY(high)], 4 * column);
      // The way back, from right to left.
      points.set([right, toY(low), left, toY(low)], 4 * (2 * num - 1 - column));
      base[column] = high;
    }
    return points;
  });
}
