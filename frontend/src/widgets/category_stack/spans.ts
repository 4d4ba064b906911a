/** Forwards and backwards of modules below the stack, and the boundary nearest to a point. Pure. */

import type { ModuleMark, ModuleSpans, ModuleState } from "../../api/types.gen";

/** Deeper rows stay out of sight; zooming in does not bring them, the table does. */
export const MOST_ROWS = 6;

export type SpanKind = ModuleSpans["kinds"][number];

export interface Span {
  readonly index: number;
  readonly module: string;
  readonly kind: SpanKind;
  readonly call: number;
  readonly depth: number;
  readonly x0: number;
  readonly x1: number;
}

export function spanOf(spans: ModuleSpans, index: number): Span {
  return {
    index,
    module: spans.modules[spans.module[index] ?? -1] ?? "",
    kind: spans.kinds[spans.kind[index] ?? -1] ?? "forward",
    call: spans.call[index] ?? 0,
    depth: spans.depth[index] ?? 0,
    x0: spans.x0[index] ?? NaN,
    x1: spans.x1[index] ?? NaN,
  };
}

export function numRows(spans: ModuleSpans): number {
  let deepest = -1;
  for (const depth of spans.depth) if (depth > deepest) deepest = depth;
  return Math.min(MOST_ROWS, deepest + 1);
}

/** `Net.layers.3` -> `layers.3`: a bare number says too little. */
export function shortName(fqn: string): string {
  const parts = fqn.split(".");
  const last = parts.at(-1) ?? fqn;
  const before = parts.at(-2);
  return /^\d+$/.test(last) && before !== undefined ? `${before}.${last}` : last;
}

/** The innermost span over x; at `row` the one that stands there. null: between spans. */
export function spanAt(spans: ModuleSpans, x: number, row: number | null): Span | null {
  let best = -1;
  for (let i = 0; i < spans.x0.length; i += 1) {
    if (!((spans.x0[i] ?? NaN) <= x && x <= (spans.x1[i] ?? NaN))) continue;
    const depth = spans.depth[i] ?? 0;
    if (row !== null && depth !== row) continue;
    if (best < 0 || depth > (spans.depth[best] ?? 0)) best = i;
  }
  return best < 0 ? null : spanOf(spans, best);
}

const STATE_AT: Readonly<Record<SpanKind, readonly [ModuleState, ModuleState]>> = {
  forward: ["before_pre_forward", "after_post_forward"],
  backward: ["before_pre_backward", "after_post_backward"],
  recompute: ["pre_forward_ac", "post_forward_ac"],
};

const MARK_STATE: Readonly<Record<ModuleMark["kind"], ModuleState>> = {
  before_optimizer: "before_optimizer",
  after_optimizer: "after_optimizer",
  peak: "window_peak",
};

/** A moment that can be shown in the table. */
export interface Boundary {
  readonly x: number;
  readonly state: ModuleState;
  /** null: of the whole window, not of one module. */
  readonly module: string | null;
  readonly call: number | null;
}

/** All boundaries in order of x; of those at one x, outer modules first. */
export function boundaries(
  spans: ModuleSpans,
  marks: readonly ModuleMark[],
): readonly Boundary[] {
  const found: Boundary[] = marks.map(({ kind, x }) => {
    return { x, state: MARK_STATE[kind], module: null, call: null };
  });
  for (let i = 0; i < spans.x0.length; i += 1) {
    found.push(...edgesOf(spanOf(spans, i)));
  }
  return found.sort((a, b) => a.x - b.x);
}

export function edgesOf(span: Span): readonly [Boundary, Boundary] {
  const { module, call } = span;
  const [first, last] = STATE_AT[span.kind];
  return [
    { x: span.x0, state: first, module, call },
    { x: span.x1, state: last, module, call },
  ];
}

/** The boundary nearest to x; of equally near ones the last, which is the innermost. */
export function nearestBoundary(all: readonly Boundary[], x: number): Boundary | null {
  let best: Boundary | null = null;
  for (const one of all) {
    if (best === null || Math.abs(one.x - x) <= Math.abs(best.x - x)) best = one;
  }
  return best;
}
