/**
 * Geometry of the stacked categories: columns of the answer as quads, and what stands at
 * a point. Pure.
 */

import type { ModuleTimelineResponse } from "../../api/types.gen";
import { pixelOf } from "../../render/palette";
import { PATTERN, type Quads } from "../../render/raster";
import type { SizePx, Viewport } from "../../render/viewport";

/** The part of an answer that is drawn as a stack. */
export type StackData = Pick<
  ModuleTimelineResponse,
  "x0" | "xPerColumn" | "totalBytes" | "peakX" | "categories"
>;

/** Room above the highest column. */
const HEADROOM = 1.08;
/** A layer at least this thick has a line at its upper edge. */
const EDGED_PX = 4;

export function columnAt({ x0, xPerColumn, totalBytes }: StackData, x: number): number {
  const column = Math.floor((x - x0) / xPerColumn);
  return column >= 0 && column < totalBytes.length ? column : -1;
}

/** The value at the upper edge of the plot for what is in sight. */
export function topOf(data: StackData, low: number, high: number): number {
  let top = 0;
  data.totalBytes.forEach((total, c) => {
    const left = data.x0 + c * data.xPerColumn;
    if (left < high && left + data.xPerColumn > low && total > top) top = total;
  });
  return top > 0 ? top * HEADROOM : 1;
}

/** The column with the highest total; -1 where there is none. */
export function peakColumn({ totalBytes }: StackData): number {
  let best = -1;
  totalBytes.forEach((total, c) => {
    if (total > (totalBytes[best] ?? -Infinity)) best = c;
  });
  return best;
}

function sameColumn({ categories }: StackData, a: number, b: number): boolean {
  return categories.every(({ bytes }) => Object.is(bytes[a], bytes[b]));
}

/** Runs of equal columns: the first one of each and, at the end, the number of all. */
function runsOf(data: StackData): readonly number[] {
  const num = data.totalBytes.length;
  const starts: number[] = [];
  for (let c = 0; c < num; c += 1) {
    if (c === 0 || !sameColumn(data, c - 1, c)) starts.push(c);
  }
  return [...starts, num];
}

/** One quad per category and run of equal columns; a quad's id is its category. */
export function stackQuads(
  data: StackData,
  colours: readonly string[],
  edge: string,
  view: Viewport,
  size: SizePx,
): Quads {
  const runs = runsOf(data);
  const pixels = colours.map(pixelOf);
  const line = pixelOf(edge);
  const edged = (EDGED_PX / size.heightPx) * Math.abs(view.y1 - view.y0);
  const rows: [number, number, number, number, number, number][] = [];
  for (let run = 0; run + 1 < runs.length; run += 1) {
    const column = runs[run] ?? 0;
    const x0 = data.x0 + column * data.xPerColumn;
    const x1 = data.x0 + (runs[run + 1] ?? 0) * data.xPerColumn;
    if (x1 <= view.x0 || x0 >= view.x1) continue;
    let base = 0;
    data.categories.forEach(({ bytes }, id) => {
      const value = bytes[column] ?? NaN;
      if (!(value > 0)) return;
      rows.push([x0, x1, base, base + value, pixels[id] ?? 0, id]);
      base += value;
      if (value >= edged) rows.push([x0, x1, base, base, line, id]);
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

/** The outline of each category in px of the plot, as x, y, x, y ...; closed. */
export function stackOutlines(
  data: StackData,
  view: Viewport,
  size: SizePx,
): readonly Float64Array[] {
  const runs = runsOf(data);
  const num = Math.max(0, runs.length - 1);
  const base = new Float64Array(num);
  const toX = (x: number): number =>
    ((x - view.x0) / (view.x1 - view.x0)) * size.widthPx;
  const toY = (y: number): number =>
    ((y - view.y0) / (view.y1 - view.y0)) * size.heightPx;
  return data.categories.map(({ bytes }) => {
    const points = new Float64Array(8 * num);
    for (let run = 0; run < num; run += 1) {
      const column = runs[run] ?? 0;
      const low = base[run] ?? 0;
      const value = bytes[column] ?? NaN;
      const high = low + (value > 0 ? value : 0);
      const left = toX(data.x0 + column * data.xPerColumn);
      const right = toX(data.x0 + (runs[run + 1] ?? 0) * data.xPerColumn);
      points.set([left, toY(high), right, toY(high)], 4 * run);
      // The way back, from right to left.
      points.set([right, toY(low), left, toY(low)], 4 * (2 * num - 1 - run));
      base[run] = high;
    }
    return points;
  });
}
