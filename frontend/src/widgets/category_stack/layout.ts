/**
 * Geometry of the stacked categories: columns of the answer, and what stands at a point.
 * Pure.
 */

import type { ModuleTimelineResponse } from "../../api/types.gen";
import type { Bands } from "../plot/bands";

/** The part of an answer that is drawn as a stack. */
export type StackData = Pick<
  ModuleTimelineResponse,
  "x0" | "xPerColumn" | "totalBytes" | "peakX" | "categories"
>;

/** Room above the highest column. */
const HEADROOM = 1.08;

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

/** Runs of equal columns side by side. */
export function bandsOf(data: StackData): Bands {
  const runs = runsOf(data);
  const starts = runs.slice(0, -1);
  return {
    edges: runs.map((column) => data.x0 + column * data.xPerColumn),
    layers: data.categories.map(({ bytes }) =>
      starts.map((column) => bytes[column] ?? NaN),
    ),
  };
}
