import type { HistoryMarkKind, HistoryMarks } from "../../api/types.gen";
import type { BlockAxis } from "./axis";
import type { XRange } from "../plot/range";

export interface PointMark {
  readonly kind: "oom" | "snapshot";
  readonly moment: number;
  readonly x: number;
  readonly label: string;
  /** oom: requested; snapshot: active; NaN: not recorded. */
  readonly bytes: number;
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

/** Further rows are not drawn. */
const MOST_ROWS = 4;

const ROW_ORDER: readonly HistoryMarkKind[] = ["step", "tag", "annotation"];

/** `part` may have marks that `whole` was sent without. */
export function drawnMarks(
  whole: HistoryMarks,
  axis: BlockAxis,
  part: HistoryMarks | null = null,
): DrawnMarks {
  const points = new Map<string, PointMark>();
  const spans = new Map<string, SpanMark>();
  for (const marks of part === null ? [whole] : [whole, part]) {
    marks.kind.forEach((code, i) => {
      const kind = marks.kinds[code];
      const moment = marks.moment[i] ?? -1;
      const end = marks.end[i] ?? moment;
      const named = marks.labels[marks.label[i] ?? -1] ?? "";
      // torch calls a snapshot's event "snapshot".
      const label = named === kind ? "" : named;
      const key = [kind, moment, end, label].join(" ");
      if (kind === "oom" || kind === "snapshot") {
        const bytes = marks.bytes[i] ?? NaN;
        points.set(key, { kind, moment, x: axis.xOf(moment), label, bytes });
      } else if (kind !== undefined) {
        const x0 = axis.xAfter(moment);
        const x1 = Math.max(x0, axis.xAfter(end));
        spans.set(key, { kind, x0, x1, row: 0, label, moment, end });
      }
    });
  }
  const placed: SpanMark[] = [];
  let firstRow = 0;
  for (const wanted of ROW_ORDER) {
    // The lowest row without overlap; outer spans before those inside them.
    const ends: number[] = [];
    const own = [...spans.values()].filter(({ kind }) => kind === wanted);
    for (const span of own.sort((a, b) => a.x0 - b.x0 || b.x1 - a.x1)) {
      const free = ends.findIndex((end) => end <= span.x0);
      const row = free < 0 ? ends.length : free;
      ends[row] = span.x1;
      if (firstRow + row < MOST_ROWS) placed.push({ ...span, row: firstRow + row });
    }
    firstRow += ends.length;
  }
  // Parts may bring more marks: the height must not change.
  const more = whole.numMarks > whole.kind.length;
  const nest = placed.some(({ kind }) => kind !== "step");
  return {
    points: [...points.values()].sort((a, b) => a.moment - b.moment),
    spans: placed,
    numRows: more && nest ? MOST_ROWS : Math.min(firstRow, MOST_ROWS),
  };
}

/** The nearest mark or end of a span before (-1) or after (+1) a moment. */
export function nextMark(marks: DrawnMarks, from: number, side: -1 | 1): number | null {
  const moments = [
    ...marks.points.map(({ moment }) => moment),
    ...marks.spans.map(({ moment }) => moment + 1),
  ].sort((a, b) => a - b);
  const nearest =
    side > 0
      ? moments.find((moment) => moment > from)
      : moments.findLast((moment) => moment < from);
  return nearest ?? null;
}

/** Events of the step around a moment; where it is in none, a tenth of all. */
export function rangeAround(
  marks: DrawnMarks,
  moment: number,
  numEvents: number,
): XRange {
  const step = marks.spans.find(
    (span) => span.kind === "step" && span.moment < moment && moment <= span.end,
  );
  if (step !== undefined) return { low: step.moment + 1, high: step.end + 1 };
  const width = Math.max(1, Math.round(numEvents / 10));
  const low = Math.round(moment - width / 2);
  const first = Math.min(Math.max(low, 0), Math.max(0, numEvents - width));
  return { low: first, high: Math.min(first + width, numEvents) };
}

export function spansAt(marks: DrawnMarks, x: number): readonly SpanMark[] {
  return marks.spans
    .filter(({ x0, x1 }) => x0 <= x && x < x1)
    .sort((a, b) => a.row - b.row);
}
