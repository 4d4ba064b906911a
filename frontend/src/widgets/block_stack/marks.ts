/** Marks of a history as they are drawn: points above the picture, spans below it. Pure. */

import type { HistoryMarkKind, HistoryMarks } from "../../api/types.gen";
import type { BlockAxis } from "./axis";

export interface PointMark {
  readonly kind: "oom" | "snapshot";
  readonly moment: number;
  readonly x: number;
  readonly label: string;
  /** oom: asked for; snapshot: active; NaN where not recorded. */
  readonly bytes: number;
  readonly deviceFree: number;
}

export interface SpanMark {
  readonly kind: HistoryMarkKind;
  readonly x0: number;
  readonly x1: number;
  readonly row: number;
  readonly label: string;
  readonly moment: number;
  readonly end: number;
}

export interface DrawnMarks {
  /** In order of events. */
  readonly points: readonly PointMark[];
  readonly spans: readonly SpanMark[];
  readonly numRows: number;
}

/** Further rows are left out: the picture matters more. */
const MOST_ROWS = 4;

const ROW_ORDER: readonly HistoryMarkKind[] = ["step", "tag", "annotation"];

/** Marks of a whole history with those that a part of it has besides; by moment. */
export function withFiner(
  whole: HistoryMarks,
  part: HistoryMarks | null,
): HistoryMarks {
  if (part === null) return whole;
  const rows = new Map<string, { readonly of: HistoryMarks; readonly at: number }>();
  for (const of of [whole, part]) {
    of.kind.forEach((kind, at) => {
      const label = of.labels[of.label[at] ?? -1] ?? "";
      const place = [kind, of.moment[at], of.end[at], label].join(" ");
      if (!rows.has(place)) rows.set(place, { of, at });
    });
  }
  const ordered = [...rows.values()].sort(
    (a, b) => (a.of.moment[a.at] ?? 0) - (b.of.moment[b.at] ?? 0),
  );
  const take = (column: (of: HistoryMarks) => ArrayLike<number>): number[] =>
    ordered.map(({ of, at }) => column(of)[at] ?? NaN);
  return {
    ...whole,
    kind: Uint8Array.from(take(({ kind }) => kind)),
    moment: Int32Array.from(take(({ moment }) => moment)),
    end: Int32Array.from(take(({ end }) => end)),
    label: Int32Array.from(
      ordered.map(
        ({ of, at }) => (of === whole ? 0 : whole.labels.length) + (of.label[at] ?? -1),
      ),
    ),
    labels: [...whole.labels, ...part.labels],
    bytes: Float64Array.from(take(({ bytes }) => bytes)),
    deviceFree: Float64Array.from(take(({ deviceFree }) => deviceFree)),
    step: Float64Array.from(take(({ step }) => step)),
  };
}

export function drawnMarks(marks: HistoryMarks, axis: BlockAxis): DrawnMarks {
  const points: PointMark[] = [];
  const spans: Omit<SpanMark, "row">[] = [];
  marks.kind.forEach((code, i) => {
    const kind = marks.kinds[code];
    if (kind === undefined) return;
    const moment = marks.moment[i] ?? -1;
    const end = marks.end[i] ?? moment;
    const label = marks.labels[marks.label[i] ?? -1] ?? "";
    if (kind === "oom" || kind === "snapshot") {
      const bytes = marks.bytes[i] ?? NaN;
      const deviceFree = marks.deviceFree[i] ?? NaN;
      points.push({ kind, moment, x: axis.xOf(moment), label, bytes, deviceFree });
    } else {
      const [x0, x1] = [axis.xAfter(moment), axis.xAfter(end)];
      spans.push({ kind, x0, x1: Math.max(x0, x1), label, moment, end });
    }
  });
  const rows = ROW_ORDER.flatMap((kind) => {
    const own = spans.filter((span) => span.kind === kind);
    return own.length === 0 ? [] : [rowsOf(own)];
  });
  const placed: SpanMark[] = [];
  let firstRow = 0;
  for (const group of rows) {
    for (const span of group.spans) {
      const row = firstRow + span.row;
      if (row < MOST_ROWS) placed.push({ ...span, row });
    }
    firstRow += group.numRows;
  }
  // Where each part brings more of them, the picture must not change its height.
  const more = marks.numMarks > marks.kind.length;
  const nest = spans.some(({ kind }) => kind !== "step");
  const numRows = more && nest ? MOST_ROWS : Math.min(firstRow, MOST_ROWS);
  return { points, spans: placed, numRows };
}

/** The lowest row in which nothing overlaps: outer spans before those inside them. */
function rowsOf(spans: readonly Omit<SpanMark, "row">[]): {
  readonly spans: readonly SpanMark[];
  readonly numRows: number;
} {
  const ordered = [...spans].sort((a, b) => a.x0 - b.x0 || b.x1 - a.x1);
  const ends: number[] = [];
  const placed = ordered.map((span) => {
    const free = ends.findIndex((end) => end <= span.x0);
    const row = free < 0 ? ends.length : free;
    ends[row] = span.x1;
    return { ...span, row };
  });
  return { spans: placed, numRows: ends.length };
}

/** The nearest mark or span's edge on a side of a moment; null: none. */
export function nextMark(marks: DrawnMarks, from: number, side: -1 | 1): number | null {
  const moments = [
    ...marks.points.map(({ moment }) => moment),
    ...marks.spans.map(({ moment }) => moment + 1),
  ].sort((a, b) => a - b);
  const found =
    side > 0
      ? moments.find((moment) => moment > from)
      : moments.findLast((moment) => moment < from);
  return found ?? null;
}

/** The spans over x, outer ones first. */
export function spansAt(marks: DrawnMarks, x: number): readonly SpanMark[] {
  return marks.spans
    .filter(({ x0, x1 }) => x0 <= x && x < x1)
    .sort((a, b) => a.row - b.row);
}
