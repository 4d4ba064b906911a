import type { TraceFamily, TraceSteps } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { categoryColour } from "../../../../model/category";
import { decimalTicks } from "../../../../model/lines/ticks";
import { xToPx, type Viewport } from "../../../../render/viewport";
import { FONT } from "../../../../widgets/export/pen";
import { clipTo } from "../../../../widgets/plot/axes";
import { partColour } from "../../../../render/palette";
import { COUNTER_PX, LANE_PX, rowsBetween, type Row } from "../plot/layout";
import type { Timeline } from "../state/timeline";
import { marksOf, type Piece, type TraceTile } from "../tiles/tile";
import { formatTick } from "../text";
import { fitting, MARK_PX, widthOf, type Canvas } from "./canvas";

/** Not the colour of a kind of work or a category. */
const COUNTER_COLOUR: Readonly<Record<Theme, string>> = {
  light: "#00796b",
  dark: "#4db6ac",
};

export function paintCounters(canvas: Canvas): void {
  const { layout, view, picture } = canvas;
  for (const row of rowsBetween(layout, view.y0, view.y1)) {
    for (const tile of picture.tiles) paintCounter(canvas, row, tile);
  }
}

function paintCounter(canvas: Canvas, row: Row, tile: TraceTile): void {
  const { context, view, trace, toX, widthPx, picture } = canvas;
  const { theme } = trace.view;
  const { key, track } = row;
  const lines = tile.linesOf(key);
  // A finer tile is drawn over a coarser one.
  const from = Math.max(0, toX(tile.low));
  const to = Math.min(widthPx, toX(tile.high));
  if (track === null || lines.length === 0 || to <= from) return;
  const most = track.most ?? 1;
  // Percentages are compared with 100.
  const high = track.unit === "percent" ? Math.max(100, most) : most;
  const low = Math.min(0, track.least ?? 0);
  const tall = Math.max(4, Math.min(COUNTER_PX, row.heightPx - 6) - 2);
  const bottom = row.y - view.y0 + tall + 1;
  const toY = (value: number) => bottom - ((value - low) / (high - low || 1)) * tall;
  const isMemory = track.process === "Memory";
  const colour = isMemory ? categoryColour(theme, "param") : COUNTER_COLOUR[theme];
  clipTo(context, from, bottom - tall - 1, to - from, tall + 2);
  if (picture.tiles.length > 1 && tile === picture.tiles.at(-1)) {
    context.fillStyle = tokens(theme).bg;
    context.fillRect(from, bottom - tall - 1, to - from, tall + 2);
  }
  for (const line of lines) {
    context.beginPath();
    let y = bottom;
    let lastX = NaN;
    for (let i = 0; i < line.timeNs.length; i += 1) {
      const value = line.value[i] ?? NaN;
      if (!Number.isFinite(value)) continue;
      const x = toX(tile.low + (line.timeNs[i] ?? 0));
      if (Number.isNaN(lastX)) context.moveTo(x, bottom);
      else context.lineTo(x, y);
      y = toY(value);
      context.lineTo(x, y);
      lastX = x;
    }
    if (Number.isNaN(lastX)) continue;
    // The last value lasts as long as the recording.
    const end = Math.min(to, Math.max(lastX + 1, toX(trace.extent.high)));
    context.lineTo(end, y);
    context.lineTo(end, bottom);
    context.globalAlpha = 0.35;
    context.fillStyle = colour;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.stroke();
  }
  context.restore();
}

const LEAST_ROOM_PX = 26;

export function traceColour(theme: Theme, family: TraceFamily): string {
  const { bad, ok, text } = tokens(theme);
  if (family === "oom") return bad;
  if (family === "checkpoint") return ok;
  return family === "instant" ? text : partColour(theme, family);
}

export function paintInstants(canvas: Canvas): void {
  const { context, layout, view, picture, toX, widthPx, heightPx, trace } = canvas;
  const wanted = trace.state.find.toLocaleLowerCase();
  for (const row of rowsBetween(layout, view.y0, view.y1)) {
    if (!row.hasMarks) continue;
    const marks = marksOf(picture.tiles, row.key);
    const middle = row.y - view.y0 + LANE_PX / 2;
    let free = -Infinity;
    marks.forEach((mark, i) => {
      const x = toX(mark.startNs);
      if (x < -200 || x > widthPx + MARK_PX) return;
      const isLit = wanted === "" || mark.name.toLocaleLowerCase().includes(wanted);
      context.globalAlpha = isLit ? 1 : 0.3;
      context.fillStyle = traceColour(trace.view.theme, mark.family);
      if (mark.family === "oom") context.fillRect(x - 0.5, 0, 1, heightPx);
      paintMark(canvas, mark.family, x, middle);
      const next = marks[i + 1];
      const end = next === undefined ? widthPx : toX(next.startNs);
      if (x >= free) free = paintName(canvas, mark, x, middle, end - MARK_PX);
      context.globalAlpha = 1;
    });
  }
}

/** Returns where the next name may begin. */
function paintName(
  { context, trace }: Canvas,
  { name, count }: Piece,
  x: number,
  middle: number,
  end: number,
): number {
  const left = x + MARK_PX + 3;
  if (end - left < LEAST_ROOM_PX) return left;
  const text = count > 1 ? `${name} and ${count - 1} more` : name;
  const label = fitting(text, widthOf(context, text), end - left - 4);
  context.fillStyle = tokens(trace.view.theme).text;
  context.fillText(label, left, middle);
  return left + widthOf(context, label);
}

/** Distinguished by form alone: a disc with a cross, a flag, a diamond. */
const SHAPES: Partial<Record<TraceFamily, string>> = {
  oom: "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0-11 0",
  checkpoint: "M-.75 6V-6H0L7-3L.75 0V6Z",
};
const DIAMOND = "M0-5L4.5 0L0 5L-4.5 0Z";
const CROSS = "M-2-2L2 2M2-2L-2 2";

function paintMark(canvas: Canvas, family: TraceFamily, x: number, y: number): void {
  const { context, trace } = canvas;
  context.save();
  context.translate(x, y);
  context.fill(new Path2D(SHAPES[family] ?? DIAMOND));
  if (family === "oom") {
    context.strokeStyle = tokens(trace.view.theme).bg;
    context.lineWidth = 1.5;
    context.stroke(new Path2D(CROSS));
  }
  context.restore();
}

export const RULER_PX = 38;

/** Times above, steps below. */
export function paintRuler(
  context: CanvasRenderingContext2D,
  view: Viewport,
  widthPx: number,
  trace: Timeline,
): void {
  const { secondary, border, text, link, bg } = tokens(trace.view.theme);
  const { steps } = trace.answer;
  const cursorNs = trace.cursor.peek();
  const toX = (ns: number): number => xToPx(view, widthPx, ns);
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const ticks = decimalTicks(view.x0, view.x1, Math.max(2, widthPx / 120));
  context.fillStyle = border;
  context.fillRect(0, RULER_PX - 1, widthPx, 1);
  for (const ns of ticks.values) {
    const x = Math.round(toX(ns));
    const tickLabel = formatTick(ns, ticks.step);
    context.fillStyle = border;
    context.fillRect(x, 0, 1, 20);
    context.fillStyle = secondary;
    // Text must not cross the plot's edge.
    if (x + 4 + widthOf(context, tickLabel) <= widthPx)
      context.fillText(tickLabel, x + 4, 9);
  }
  let free = -Infinity;
  let first = true;
  for (let i = firstStep(steps, view.x0); i < steps.number.length; i += 1) {
    const start = steps.startNs[i] ?? 0;
    if (start > view.x1) break;
    const left = Math.max(0, toX(start));
    const right = Math.min(widthPx, toX(steps.endNs[i] ?? start));
    context.fillStyle = link;
    context.globalAlpha = i % 2 === 0 ? 0.22 : 0.12;
    context.fillRect(left, 20, Math.max(1, right - left), RULER_PX - 21);
    context.globalAlpha = 1;
    const number = steps.number[i] ?? -1;
    const stepLabel = number < 0 ? "" : first ? `step ${number}` : number.toString();
    const wide = widthOf(context, stepLabel) + 8;
    if (stepLabel === "" || left < free || right - left < wide - 4) continue;
    context.fillStyle = text;
    context.fillText(stepLabel, left + 4, 29);
    free = left + wide;
    first = false;
  }
  if (cursorNs === null) return;
  const cursorLabel = formatTick(cursorNs, ticks.step / 100, ticks.step);
  const wide = widthOf(context, cursorLabel) + 8;
  const left = Math.min(Math.max(0, toX(cursorNs) - wide / 2), widthPx - wide);
  context.fillStyle = secondary;
  context.fillRect(left, 1, wide, 16);
  context.fillStyle = bg;
  context.fillText(cursorLabel, left + 4, 9);
}

/** First step that ends after a time. */
export function firstStep({ endNs }: TraceSteps, ns: number): number {
  const index = endNs.findIndex((end) => end > ns);
  return index < 0 ? endNs.length : index;
}
