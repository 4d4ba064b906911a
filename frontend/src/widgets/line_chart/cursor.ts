import type { Mark } from "../../api/types.gen";
import type { Envelope } from "../../model/lines/peaks";
import { lowerBound, nearestIndex } from "../../model/lines/polyline";
import { alignTo, mergeX } from "../../model/table";
import type { XRange } from "../plot/range";
import { byGravity } from "./marks";
import type { ChartBand, ChartLine } from "./types";

/** -1: x is further from it than twice the distance to its own neighbours. */
export function pointAt(x: Float64Array, cursorX: number): number {
  const index = nearestIndex(x, cursorX);
  if (index < 0) return -1;
  const here = x[index] ?? NaN;
  const left = here - (x[index - 1] ?? -Infinity);
  const right = (x[index + 1] ?? Infinity) - here;
  const reach = Math.min(left, right);
  return Number.isFinite(reach) && Math.abs(cursorX - here) > reach * 2 ? -1 : index;
}

interface CursorRow {
  readonly line: ChartLine;
  /** Highest; NaN: not recorded. */
  readonly value: number;
  /** Lowest; equals `value` where nothing was merged. */
  readonly low: number;
}

export function rowOf(line: ChartLine, cursorX: number): CursorRow {
  const next = lowerBound(line.x, cursorX);
  const isAt = (line.x[next] ?? NaN) === cursorX;
  const index =
    line.isStepped === true ? next - (isAt ? 0 : 1) : pointAt(line.x, cursorX);
  return { line, value: line.y[index] ?? NaN, low: line.yLow[index] ?? NaN };
}

/** Highest first, absent values last; equal values in the order of the lines. */
export function cursorRows(
  lines: readonly ChartLine[],
  cursorX: number,
): readonly CursorRow[] {
  const key = ({ value }: CursorRow): number =>
    Number.isFinite(value) ? value : -Infinity;
  return lines
    .map((line) => rowOf(line, cursorX))
    .sort((a, b) => (key(a) === key(b) ? 0 : key(b) - key(a)));
}

/** The highest value at every x of a line or the band. */
export function envelopeOf(
  lines: readonly ChartLine[],
  band: ChartBand | null,
): Envelope {
  const columns = lines.map(({ x, y }) => ({ x, y }));
  if (band !== null) columns.push({ x: band.x, y: band.high });
  const x = mergeX(columns.map((column) => column.x));
  const y = new Float64Array(x.length).fill(NaN);
  for (const column of columns) {
    alignTo(x, column.x, column.y).forEach((value, i) => {
      const highest = y[i] ?? NaN;
      if (value > highest || Number.isNaN(highest)) y[i] = value;
    });
  }
  return { x, y };
}

/** null: none within `reachPx`. */
export function nearestLine(
  lines: readonly ChartLine[],
  cursorX: number,
  yPx: number,
  toY: (value: number) => number,
  reachPx: number,
): ChartLine | null {
  let best: ChartLine | null = null;
  let distance = reachPx;
  for (const line of lines) {
    const { value, low } = rowOf(line, cursorX);
    const [top, bottom] = [toY(value), toY(low)];
    const away = Math.max(top - yPx, yPx - bottom, 0);
    if (away < distance) {
      distance = away;
      best = line;
    }
  }
  return best;
}

/** Marks within one px of each other, the gravest first. */
export function groupMarks(
  marks: readonly Mark[],
  range: XRange,
  widthPx: number,
): readonly (readonly [Mark, ...Mark[]])[] {
  const scale = widthPx / (range.high - range.low || 1);
  const groups = new Map<number, [Mark, ...Mark[]]>();
  for (const mark of marks) {
    if (!(mark.x >= range.low && mark.x <= range.high)) continue;
    const column = Math.round((mark.x - range.low) * scale);
    const group = groups.get(column);
    if (group === undefined) groups.set(column, [mark]);
    else group.push(mark);
  }
  return Array.from(groups.values(), (group) => group.sort(byGravity));
}
