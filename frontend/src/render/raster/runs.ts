/**
 * A run is one block at one height of its band over neighbouring columns; bands are
 * stacked column by column. Blocks thinner than a pixel are summed up on top of their
 * band and hatched. Nothing overlaps, so a drawing costs no more than its pixels.
 */

import { xToPx, type Viewport } from "../viewport";
import { mixHalf, type Raster } from "./raster";

export interface Runs {
  /** World x; one more than there are columns. */
  readonly edges: Float64Array;
  /** By run: block, first and last column, bytes above its band's lower edge. */
  readonly slot: Int32Array;
  readonly first: Uint16Array;
  readonly last: Uint16Array;
  readonly offset: Float64Array;
  /** By block. */
  readonly size: Float64Array;
  readonly band: Uint16Array;
  /** Bands x columns, world y: lower edge, height, hatched height. */
  readonly below: Float64Array;
  readonly height: Float64Array;
  readonly rest: Float64Array;
  /** World y range of known blocks; it is cleared before drawing. */
  readonly yLow: number;
  readonly yHigh: number;
}

export interface RunColours {
  /** 0xAABBGGRR by block. */
  readonly bySlot: Uint32Array;
  /** By band. */
  readonly byBand: Uint32Array;
  /** Mixed into edges and hatching. */
  readonly edge: number;
}

/** Runs this tall have a line at the top and where their block begins. */
const EDGED_PX = 4;

function numColumns({ edges }: Runs): number {
  return Math.max(0, edges.length - 1);
}

/** One id per run, then one per band and column. */
export function numRunIds(runs: Runs): number {
  return runs.slot.length + runs.rest.length;
}

export function runsFill(runs: Runs, view: Viewport): boolean {
  const { edges, yLow, yHigh } = runs;
  const [left, right] = [edges[0] ?? Infinity, edges.at(-1) ?? -Infinity];
  return left <= view.x0 && right >= view.x1 && yLow <= view.y1 && yHigh >= view.y0;
}

type RunPick =
  | { readonly kind: "block"; readonly run: number }
  | { readonly kind: "rest"; readonly band: number; readonly column: number };

export function runPick(runs: Runs, id: number): RunPick {
  const beyond = id - runs.slot.length;
  if (beyond < 0) return { kind: "block", run: id };
  const columns = Math.max(1, numColumns(runs));
  return { kind: "rest", band: Math.floor(beyond / columns), column: beyond % columns };
}

/** World y. */
export function runBelow(runs: Runs, run: number, column: number): number {
  const band = runs.band[runs.slot[run] ?? 0] ?? 0;
  const below = runs.below[band * numColumns(runs) + column] ?? 0;
  return below + (runs.offset[run] ?? 0);
}

/** Bands x columns. */
export function stackedBelow(height: Float64Array, columns: number): Float64Array {
  const below = new Float64Array(height.length);
  for (let i = columns; i < height.length; i += 1) {
    below[i] = (below[i - columns] ?? 0) + (height[i - columns] ?? 0);
  }
  return below;
}

function clamped(px: number, most: number): number {
  return px < 0 ? 0 : px > most ? most : px;
}

interface Canvas {
  readonly raster: Raster;
  readonly runs: Runs;
  readonly colours: RunColours;
  readonly firstId: number;
  /** Column edges in px; equal ones: the column is not visible. */
  readonly px: Int32Array;
  /** Bands x columns: the next column where the band's lower edge differs. */
  readonly until: Uint16Array;
  readonly toY: (y: number) => number;
}

function edgesPx(runs: Runs, view: Viewport, widthPx: number): Int32Array {
  const px = new Int32Array(runs.edges.length);
  for (let i = 0; i < px.length; i += 1) {
    px[i] = clamped(Math.round(xToPx(view, widthPx, runs.edges[i] ?? NaN)), widthPx);
  }
  return px;
}

function steps({ below }: Runs, columns: number): Uint16Array {
  const until = new Uint16Array(below.length);
  for (let i = below.length - 1; i >= 0; i -= 1) {
    const column = i % columns;
    const same = column + 1 < columns && below[i] === below[i + 1];
    until[i] = same ? (until[i + 1] ?? 0) : column + 1;
  }
  return until;
}

/** Ids are `firstId` + those of `runPick`. */
export function drawRuns(
  raster: Raster,
  view: Viewport,
  runs: Runs,
  colours: RunColours,
  firstId: number,
  background: number,
): void {
  const scale = raster.heightPx / (view.y1 - view.y0);
  const canvas: Canvas = {
    raster,
    runs,
    colours,
    firstId,
    px: edgesPx(runs, view, raster.widthPx),
    until: steps(runs, Math.max(1, numColumns(runs))),
    toY: (y) => clamped(Math.round((y - view.y0) * scale), raster.heightPx),
  };
  clear(canvas, background);
  drawBlocks(canvas);
  drawRests(canvas);
}

/** Removes what a coarser tile drew. */
function clear({ raster, runs, px, toY }: Canvas, background: number): void {
  const { widthPx, pixels, ids } = raster;
  const left = px[0] ?? 0;
  const right = px[px.length - 1] ?? 0;
  for (let y = toY(runs.yHigh); y < toY(runs.yLow); y += 1) {
    pixels.fill(background, y * widthPx + left, y * widthPx + right);
    ids.fill(-1, y * widthPx + left, y * widthPx + right);
  }
}

function drawBlocks(canvas: Canvas): void {
  const { runs, colours, firstId, px, until, toY } = canvas;
  const { pixels, widthPx } = canvas.raster;
  const { slot, first, last, offset, size, band, below } = runs;
  const columns = numColumns(runs);
  for (let run = 0; run < slot.length; run += 1) {
    const from = first[run] ?? 0;
    const end = (last[run] ?? 0) + 1;
    if ((px[end] ?? 0) <= (px[from] ?? 0)) continue;
    const block = slot[run] ?? 0;
    const row = (band[block] ?? 0) * columns;
    const colour = colours.bySlot[block] ?? 0;
    const edge = mixHalf(colour, colours.edge);
    const begins = from > 0 && slot[run - 1] !== block;
    let column = from;
    while (column < end) {
      const next = Math.min(until[row + column] ?? end, end);
      const low = (below[row + column] ?? 0) + (offset[run] ?? 0);
      const bottom = toY(low);
      const top = toY(low + (size[block] ?? 0));
      const left = px[column] ?? 0;
      const right = px[next] ?? 0;
      if (bottom > top && right > left) {
        const edged = bottom - top >= EDGED_PX;
        fill(canvas.raster, left, right, top, bottom, colour, firstId + run);
        if (edged) pixels.fill(edge, top * widthPx + left, top * widthPx + right);
        if (edged && begins && column === from && right - left >= EDGED_PX) {
          for (let y = top; y < bottom; y += 1) pixels[y * widthPx + left] = edge;
        }
      }
      column = next;
    }
  }
}

function fill(
  { widthPx, pixels, ids }: Raster,
  left: number,
  right: number,
  top: number,
  bottom: number,
  colour: number,
  id: number,
): void {
  for (let y = top; y < bottom; y += 1) {
    const start = y * widthPx + left;
    const end = y * widthPx + right;
    if (right - left < 8) {
      // Most runs are narrow: below 8 px a loop is faster than `fill`.
      for (let pixel = start; pixel < end; pixel += 1) {
        pixels[pixel] = colour;
        ids[pixel] = id;
      }
    } else {
      pixels.fill(colour, start, end);
      ids.fill(id, start, end);
    }
  }
}

function drawRests({ raster, runs, colours, firstId, px, toY }: Canvas): void {
  const { widthPx, pixels, ids } = raster;
  const columns = numColumns(runs);
  for (let i = 0; i < runs.rest.length; i += 1) {
    const bytes = runs.rest[i] ?? 0;
    if (!(bytes > 0)) continue;
    const column = i % columns;
    const left = px[column] ?? 0;
    const right = px[column + 1] ?? 0;
    if (right <= left) continue;
    const high = (runs.below[i] ?? 0) + (runs.height[i] ?? 0);
    const bottom = toY(high - bytes);
    const colour = colours.byBand[Math.floor(i / columns)] ?? 0;
    // Low contrast: large hatched areas must not dominate.
    const second = mixHalf(colour, mixHalf(colour, colours.edge));
    const id = firstId + runs.slot.length + i;
    for (let y = toY(high); y < bottom; y += 1) {
      for (let x = left; x < right; x += 1) {
        pixels[y * widthPx + x] = ((x + y) & 7) < 3 ? second : colour;
        ids[y * widthPx + x] = id;
      }
    }
  }
}
