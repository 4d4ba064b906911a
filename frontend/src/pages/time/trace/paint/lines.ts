/** Counters over time: each value holds on to the next one. */

import type { TraceFamily, TraceSteps, TraceTrack } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { categoryColour } from "../../../../model/category";
import { decimalTicks } from "../../../../model/lines/ticks";
import { xToPx, type Viewport } from "../../../../render/viewport";
import { familyColour } from "../../profiled/family_colours";
import { COUNTER_PX, LANE_PX, rowsBetween, type Row } from "../plot/layout";
import type { Timeline } from "../state/timeline";
import { marksOf, type Piece, type TraceTile } from "../tiles/tile";
import { formatTick } from "../words";
import { fitting, FONT, MARK_PX, widthOf, type Canvas } from "./paint";

/** No kind of work and no category of memory has it. */
const COUNTER_COLOUR: Readonly<Record<Theme, string>> = {
  light: "#00796b",
  dark: "#4db6ac",
};

function counterColour(theme: Theme, track: TraceTrack): string {
  if (track.process === "Memory") return categoryColour(theme, "param");
  return COUNTER_COLOUR[theme];
}

export function paintCounters(canvas: Canvas): void {
  const { layout, view, picture } = canvas;
  for (const row of rowsBetween(layout, view.y0, view.y1)) {
    if (row.track?.kind !== "counter") continue;
    for (const tile of picture.tiles) {
      if (tile.lines.has(row.trackKey)) paintCounter(canvas, row, tile);
    }
  }
}

function paintCounter(canvas: Canvas, row: Row, tile: TraceTile): void {
  const { context, view, trace, toX, widthPx, picture } = canvas;
  const { tiles } = picture;
  const { theme } = trace.view;
  const { track } = row;
  if (track === null) return;
  const most = track.most ?? 1;
  // Shares are compared with all there is.
  const high = track.unit === "percent" ? Math.max(100, most) : most;
  const low = Math.min(0, track.least ?? 0);
  const span = high - low || 1;
  const tall = Math.max(4, Math.min(COUNTER_PX, row.heightPx - 6) - 2);
  const bottom = row.y - view.y0 + tall + 1;
  // A finer tile is drawn over what a coarser one says there.
  const from = Math.max(0, toX(tile.lowNs));
  const to = Math.min(widthPx, toX(tile.highNs));
  if (to <= from) return;
  const colour = counterColour(theme, track);
  context.save();
  context.beginPath();
  context.rect(from, bottom - tall - 1, to - from, tall + 2);
  context.clip();
  if (tiles.length > 1 && tile === tiles.at(-1)) {
    context.fillStyle = tokens(theme).bg;
    context.fillRect(from, bottom - tall - 1, to - from, tall + 2);
  }
  for (const line of tile.lines.get(row.trackKey) ?? []) {
    context.beginPath();
    let y = bottom;
    let begun = false;
    let lastX = from;
    for (let i = 0; i < line.timeNs.length; i += 1) {
      const value = line.value[i] ?? NaN;
      const x = toX(tile.lowNs + (line.timeNs[i] ?? 0));
      if (!Number.isFinite(value)) continue;
      if (begun) context.lineTo(x, y);
      else context.moveTo(x, bottom);
      begun = true;
      y = bottom - ((value - low) / span) * tall;
      context.lineTo(x, y);
      lastX = x;
    }
    if (!begun) continue;
    // The last value holds on where the recording does.
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

/** Of slices, and of instants. */
export function traceColour(theme: Theme, family: TraceFamily): string {
  const { bad, ok, text } = tokens(theme);
  if (family === "oom") return bad;
  if (family === "checkpoint") return ok;
  return family === "instant" ? text : familyColour(theme, family);
}

export function paintInstants(canvas: Canvas): void {
  const { context, layout, view, picture, toX, widthPx, trace } = canvas;
  const wanted = trace.state.find.toLocaleLowerCase();
  for (const row of rowsBetween(layout, view.y0, view.y1)) {
    if (!row.hasMarks) continue;
    const marks = marksOf(picture.tiles, row.trackKey);
    const middle = row.y - view.y0 + LANE_PX / 2;
    let free = -Infinity;
    marks.forEach((mark, i) => {
      const x = toX(mark.startNs);
      if (x < -200 || x > widthPx + MARK_PX) return;
      const isLit = wanted === "" || mark.name.toLocaleLowerCase().includes(wanted);
      context.globalAlpha = isLit ? 1 : 0.3;
      context.fillStyle = traceColour(trace.view.theme, mark.family);
      if (mark.family === "oom") context.fillRect(x - 0.5, 0, 1, canvas.heightPx);
      shape(canvas, mark.family, x, middle);
      const next = marks[i + 1];
      const end = next === undefined ? widthPx : toX(next.startNs);
      if (x >= free) free = name(canvas, mark, x, middle, end - MARK_PX);
      context.globalAlpha = 1;
    });
  }
}

/** Gives back where the next name may begin. */
function name(
  { context, trace }: Canvas,
  mark: Piece,
  x: number,
  middle: number,
  end: number,
): number {
  const left = x + MARK_PX + 3;
  if (end - left < LEAST_ROOM_PX) return left;
  const text = mark.count > 1 ? `${mark.name} and ${mark.count - 1} more` : mark.name;
  const words = fitting(text, widthOf(context, text), end - left - 4);
  if (words !== "") {
    context.fillStyle = tokens(trace.view.theme).text;
    context.fillText(words, left, middle);
  }
  return left + (words === "" ? 0 : widthOf(context, words));
}

/** Told apart by their form alone: a cross in a disc, a flag, a diamond. */
function shape(
  { context, trace }: Canvas,
  family: TraceFamily,
  x: number,
  y: number,
): void {
  const r = MARK_PX;
  context.beginPath();
  if (family === "oom") {
    context.arc(x, y, r + 0.5, 0, 2 * Math.PI);
    context.fill();
    context.save();
    context.strokeStyle = tokens(trace.view.theme).bg;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x - 2, y - 2);
    context.lineTo(x + 2, y + 2);
    context.moveTo(x + 2, y - 2);
    context.lineTo(x - 2, y + 2);
    context.stroke();
    context.restore();
    return;
  }
  if (family === "checkpoint") {
    context.rect(x - 0.75, y - r - 1, 1.5, 2 * r + 2);
    context.moveTo(x, y - r - 1);
    context.lineTo(x + r + 2, y - r / 2 - 0.5);
    context.lineTo(x, y + 0.5);
  } else {
    context.moveTo(x, y - r);
    context.lineTo(x + r - 0.5, y);
    context.lineTo(x, y + r);
    context.lineTo(x - r + 0.5, y);
  }
  context.fill();
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
    context.fillStyle = border;
    context.fillRect(x, 0, 1, 20);
    context.fillStyle = secondary;
    context.fillText(formatTick(ns, ticks.step), x + 4, 9);
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
    const words = number < 0 ? "" : first ? `step ${number}` : number.toString();
    const wide = widthOf(context, words) + 8;
    if (words === "" || left < free || right - left < wide - 4) continue;
    context.fillStyle = text;
    context.fillText(words, left + 4, 29);
    free = left + wide;
    first = false;
  }
  if (cursorNs !== null) {
    const x = toX(cursorNs);
    const words = formatTick(cursorNs, ticks.step / 100, ticks.step);
    const wide = widthOf(context, words) + 8;
    const left = Math.min(Math.max(0, x - wide / 2), widthPx - wide);
    context.fillStyle = secondary;
    context.fillRect(left, 1, wide, 16);
    context.fillStyle = bg;
    context.fillText(words, left + 4, 9);
  }
}

/** First step that ends after a time. */
export function firstStep({ endNs }: TraceSteps, ns: number): number {
  const at = endNs.findIndex((end) => end > ns);
  return at < 0 ? endNs.length : at;
}
