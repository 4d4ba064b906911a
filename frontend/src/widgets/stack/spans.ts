/** A row is a level of the model; backwards of neighbours may overlap a little. */

import type { ModuleMark, ModuleSpans, ModuleState } from "../../api/types.gen";

/** Deeper levels are only in the table. */
const MOST_ROWS = 6;

export type SpanKind = ModuleSpans["kinds"][number];

export interface Span {
  readonly module: string;
  readonly kind: SpanKind;
  readonly call: number;
  readonly row: number;
  readonly x0: number;
  readonly x1: number;
}

/** Outer levels first; those below the last row are left out. */
export function spansOf(spans: ModuleSpans): readonly Span[] {
  const levels = spans.modules.map((fqn) => fqn.split(".").length);
  // Containers that are never called get no row.
  const rows = [...new Set(levels)].sort((a, b) => a - b).slice(0, MOST_ROWS);
  const rowOf = new Map(rows.map((level, row) => [level, row]));
  const drawnSpans: Span[] = [];
  spans.module.forEach((module, i) => {
    const row = rowOf.get(levels[module] ?? -1);
    if (row === undefined) return;
    drawnSpans.push({
      module: spans.modules[module] ?? "",
      kind: spans.kinds[spans.kind[i] ?? -1] ?? "forward",
      call: spans.call[i] ?? 0,
      row,
      x0: spans.x0[i] ?? NaN,
      x1: spans.x1[i] ?? NaN,
    });
  });
  return drawnSpans.sort((a, b) => a.row - b.row || a.x0 - b.x0);
}

export function numRows(spans: readonly Span[]): number {
  return (spans.at(-1)?.row ?? -1) + 1;
}

/** `Net.layers.3` -> `layers.3`: a bare number is not enough. */
export function shortName(fqn: string): string {
  const parts = fqn.split(".");
  const last = parts.at(-1) ?? fqn;
  const before = parts.at(-2);
  return /^\d+$/.test(last) && before !== undefined ? `${before}.${last}` : last;
}

/** The innermost span over x, or the one in `row`; null: none. */
export function spanAt(
  spans: readonly Span[],
  x: number,
  row: number | null,
): Span | null {
  // The last of a row is on top.
  const topmost = spans.findLast(
    (span) => span.x0 <= x && x <= span.x1 && (row === null || span.row === row),
  );
  return topmost ?? null;
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

export interface Boundary {
  readonly x: number;
  readonly state: ModuleState;
  /** null: not of one module. */
  readonly module: string | null;
  readonly call: number | null;
}

/** By x; of those at one x, outer modules first. */
export function boundaries(
  spans: readonly Span[],
  marks: readonly ModuleMark[],
): readonly Boundary[] {
  const merged: Boundary[] = marks.map(({ kind, x }) => {
    return { x, state: MARK_STATE[kind], module: null, call: null };
  });
  for (const span of spans) merged.push(...edgesOf(span));
  return merged.sort((a, b) => a.x - b.x);
}

export function edgesOf(span: Span): readonly [Boundary, Boundary] {
  const { module, call } = span;
  const [first, last] = STATE_AT[span.kind];
  return [
    { x: span.x0, state: first, module, call },
    { x: span.x1, state: last, module, call },
  ];
}

/** Of equally near ones the last, which is the innermost. */
export function nearestBoundary(all: readonly Boundary[], x: number): Boundary | null {
  let best: Boundary | null = null;
  for (const boundary of all) {
    if (best === null || Math.abs(boundary.x - x) <= Math.abs(best.x - x))
      best = boundary;
  }
  return best;
}

const KIND_WORDS: Readonly<Record<SpanKind, string>> = {
  forward: "forward",
  backward: "backward",
  recompute: "recomputed forward",
};

export function spanWords({ kind, module, call }: Span): string {
  return `${KIND_WORDS[kind]} of ${module}${call > 0 ? `, call ${call + 1}` : ""}`;
}
