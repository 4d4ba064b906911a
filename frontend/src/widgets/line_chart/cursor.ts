/** What the chart says at one x: exact values, highest first. Pure. */

import type { Mark } from "../../api/types.gen";
import { nearestIndex } from "../../model/lines/polyline";
import type { ChartBand, ChartLine, XRange } from "./types";

export interface CursorRow {
  readonly id: string;
  readonly label: string;
  readonly note: string | null;
  /** Index into the line palette; null for the band's rows. */
  readonly colour: number | null;
  readonly dash: "solid" | "dashed" | "dotted";
  /** Highest value there; NaN where nothing was recorded. */
  readonly value: number;
  /** Lowest value there; equals `value` where nothing was merged. */
  readonly low: number;
}

export interface BandRow {
  readonly label: string;
  readonly low: number;
  readonly p5: number;
  readonly median: number;
  readonly p95: number;
  readonly high: number;
  /** null where it is not known. */
  readonly highRank: number | null;
}

/**
 * The nearest point speaks for x unless it is further away than twice the distance to
 * its own neighbours: then nothing was recorded there.
 */
export function pointAt(x: Float64Array, at: number): number {
  const index = nearestIndex(x, at);
  if (index < 0) return -1;
  const here = x[index] ?? NaN;
  const left = here - (x[index - 1] ?? -Infinity);
  const right = (x[index + 1] ?? Infinity) - here;
  const reach = Math.min(left, right);
  return Number.isFinite(reach) && Math.abs(at - here) > reach * 2 ? -1 : index;
}

export function cursorRows(
  lines: readonly ChartLine[],
  at: number,
): readonly CursorRow[] {
  const rows = lines.map((line) => {
    const index = pointAt(line.x, at);
    return {
      id: line.id,
      label: line.label,
      note: line.note ?? null,
      colour: line.colour,
      dash: line.dash ?? "solid",
      value: line.y[index] ?? NaN,
      low: line.yLow[index] ?? NaN,
    };
  });
  const key = (row: CursorRow): number =>
    Number.isFinite(row.value) ? row.value : -Infinity;
  // Equal values keep the order of the lines.
  return rows.sort((a, b) => {
    const [left, right] = [key(a), key(b)];
    return left === right ? 0 : right - left;
  });
}

export function bandRow(band: ChartBand, at: number): BandRow | null {
  const i = pointAt(band.x, at);
  if (i < 0) return null;
  const value = (column: Float64Array): number => column[i] ?? NaN;
  return {
    label: band.label,
    low: value(band.low),
    p5: value(band.p5),
    median: value(band.median),
    p95: value(band.p95),
    high: value(band.high),
    highRank: band.highRank[i] ?? null,
  };
}

/** x of the point the cursor reads, so that it snaps to what is recorded. */
export function snapX(
  lines: readonly ChartLine[],
  band: ChartBand | null,
  at: number,
): number {
  const columns = lines.map((line) => line.x);
  if (band !== null) columns.push(band.x);
  let best = at;
  let distance = Infinity;
  for (const x of columns) {
    const near = x[nearestIndex(x, at)] ?? NaN;
    if (Math.abs(near - at) < distance) {
      distance = Math.abs(near - at);
      best = near;
    }
  }
  return best;
}

/** The recorded x next to `at`, `count` points away to the right (left if negative). */
export function stepX(
  lines: readonly ChartLine[],
  band: ChartBand | null,
  at: number,
  count: number,
): number {
  const longest = lines.reduce<Float64Array>(
    (best, line) => (line.x.length > best.length ? line.x : best),
    band?.x ?? new Float64Array(),
  );
  const index = nearestIndex(longest, at);
  const target = Math.min(Math.max(index + count, 0), longest.length - 1);
  return longest[target] ?? at;
}

/** The line nearest to a point of the plot; null where none is within reach. */
export function nearestLine(
  lines: readonly ChartLine[],
  at: number,
  yPx: number,
  toY: (value: number) => number,
  reachPx: number,
): ChartLine | null {
  let best: ChartLine | null = null;
  let distance = reachPx;
  for (const line of lines) {
    const index = pointAt(line.x, at);
    const [top, bottom] = [toY(line.y[index] ?? NaN), toY(line.yLow[index] ?? NaN)];
    const away = Math.max(top - yPx, yPx - bottom, 0);
    if (away < distance) {
      distance = away;
      best = line;
    }
  }
  return best;
}

/** Marks that stand within one px of each other count as one. */
export interface MarkGroup {
  readonly kind: Mark["kind"];
  readonly x: number;
  readonly marks: readonly Mark[];
}

/** When marks share a place, the gravest gives the line its look. */
const GRAVITY: Readonly<Record<Mark["kind"], number>> = {
  oom: 6,
  attempt: 5,
  dropped: 4,
  retry: 3,
  user: 2,
  phase: 1,
  epoch: 0,
};

export function groupMarks(
  marks: readonly Mark[],
  range: XRange,
  widthPx: number,
): readonly MarkGroup[] {
  const scale = widthPx / (range.high - range.low || 1);
  const groups = new Map<number, Mark[]>();
  for (const mark of marks) {
    if (!(mark.x >= range.low && mark.x <= range.high)) continue;
    const column = Math.round((mark.x - range.low) * scale);
    const group = groups.get(column);
    if (group === undefined) groups.set(column, [mark]);
    else group.push(mark);
  }
  return [...groups.values()].map((group) => {
    const ordered = group.sort((a, b) => GRAVITY[b.kind] - GRAVITY[a.kind]);
    const [first] = ordered;
    return { kind: first?.kind ?? "user", x: first?.x ?? NaN, marks: ordered };
  });
}
