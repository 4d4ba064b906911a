/** Geometry of the stacked parts: columns of an answer, and what they add up to. */

import type { Bands } from "../plot/bands";
import type { StackedSteps } from "./types";

/** Room above the highest column. */
const HEADROOM = 1.08;
/** One step that is so many times the 95th percentile would flatten all others ... */
const WILD = 4;
/** ... so the plot ends at so many times it. */
const CUT_AT = 2.5;

export interface Layer {
  readonly name: string;
  readonly seconds: Float64Array;
}

/** What is stacked; without parts the step is one layer. */
export function layersOf(answer: StackedSteps): readonly Layer[] {
  return answer.parts.length > 0
    ? answer.parts
    : [{ name: "step", seconds: answer.seconds }];
}

/** The column over x; -1 where there is none. */
export function columnAt({ edges }: Pick<StackedSteps, "edges">, x: number): number {
  const num = edges.length - 1;
  if (num < 1 || !(x >= (edges[0] ?? NaN)) || !(x < (edges[num] ?? NaN))) return -1;
  let low = 0;
  let high = num;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((edges[middle] ?? Infinity) <= x) low = middle;
    else high = middle;
  }
  return low;
}

export function centreOf(
  { edges }: Pick<StackedSteps, "edges">,
  column: number,
): number {
  return ((edges[column] ?? NaN) + (edges[column + 1] ?? NaN)) / 2;
}

/** The column that shows a step; -1 where none does. */
export function columnOfStep(answer: StackedSteps, step: number): number {
  const { firstStep, stepsPerColumn } = answer;
  const first = firstStep[0];
  if (first === undefined || step < first) return -1;
  const column = Math.floor((step - first) / stepsPerColumn);
  return column < firstStep.length ? column : -1;
}

/** What the profiler did in the step that a column shows; null: nothing. */
export function profiledIn(
  { shownStep, profilerSteps }: StackedSteps,
  column: number,
): StackedSteps["profilerSteps"][number]["what"] | null {
  const step = shownStep[column] ?? NaN;
  const found = profilerSteps.find(({ first, last }) => first <= step && step <= last);
  return found?.what ?? null;
}

/** The columns that lie, in part at least, between two x. */
export function columnsWithin(
  { edges }: Pick<StackedSteps, "edges">,
  low: number,
  high: number,
): readonly number[] {
  const found: number[] = [];
  for (let c = 0; c + 1 < edges.length; c += 1) {
    if ((edges[c + 1] ?? NaN) > low && (edges[c] ?? NaN) < high) found.push(c);
  }
  return found;
}

export interface Top {
  readonly value: number;
  /** Whether columns reach beyond it. */
  readonly cut: boolean;
}

/** The value at the upper edge of the plot for what is in sight. */
export function topOf(
  answer: StackedSteps,
  low: number,
  high: number,
  whole: boolean,
): Top {
  const values = columnsWithin(answer, low, high)
    .map((c) => answer.seconds[c] ?? NaN)
    .filter((value) => value > 0)
    .sort((a, b) => a - b);
  const most = values.at(-1);
  if (most === undefined) return { value: 1, cut: false };
  const usual = values[Math.floor((values.length - 1) * 0.95)] ?? most;
  if (!whole && most > WILD * usual) return { value: CUT_AT * usual, cut: true };
  return { value: most * HEADROOM, cut: false };
}

/** What a layer takes of all the time between two x; NaN where it was not recorded. */
export function shareOf(
  answer: StackedSteps,
  layer: Layer,
  low: number,
  high: number,
): number {
  let part = 0;
  let whole = 0;
  for (const c of columnsWithin(answer, low, high)) {
    const value = layer.seconds[c] ?? NaN;
    if (Number.isNaN(value)) continue;
    part += value;
    whole += answer.seconds[c] ?? 0;
  }
  return whole > 0 ? part / whole : NaN;
}

/** Columns of steps with the layers upon each other. */
export function bandsOf(answer: StackedSteps): Bands {
  return {
    edges: answer.edges,
    layers: layersOf(answer).map(({ seconds }) => seconds),
  };
}
