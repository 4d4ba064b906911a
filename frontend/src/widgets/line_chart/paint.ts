import type { Mark } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";
import { area, polyline } from "../../model/lines/polyline";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import { haloText } from "../plot/canvas";
import { groupMarks } from "./cursor";
import {
  BAND_ID,
  projectX,
  projectY,
  smooth,
  visibleLines,
  type ChartData,
  type Frame,
} from "./frame";
import { markLook } from "./marks";
import { dashOf, lineColour } from "./palette";
import type { ChartLine } from "./types";

/** Lower plots do not name a limit above the view. */
const ROOMY_PX = 130;
/** Of the raw line below its smoothed one. */
const RAW_OPACITY = 0.28;

export function paintMarks(
  pen: Pen,
  frame: Frame,
  marks: readonly Mark[],
  theme: Theme,
): void {
  const { widthPx, heightPx } = frame.size;
  const { x0: low, x1: high } = frame.view;
  const toX = projectX(frame);
  pen.textBaseline = "alphabetic";
  for (const group of groupMarks(marks, { low, high }, widthPx)) {
    const [{ kind, label, x: markX }] = group;
    const x = Math.round(toX(markX)) + 0.5;
    const look = markLook(kind, theme);
    pen.name?.(group.map((mark) => mark.label || mark.kind).join("; "));
    pen.strokeStyle = pen.fillStyle = look.colour;
    pen.globalAlpha = look.opacity;
    pen.lineWidth = look.widthPx;
    pen.setLineDash(look.dash);
    strokeLine(pen, x, heightPx - (look.heightPx ?? heightPx), x, heightPx);
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    const isLetter = kind === "user" && label.length === 1;
    const glyph = isLetter ? label : look.glyph;
    if (glyph === null) continue;
    const isLast = x > widthPx - 14;
    pen.font = `bold ${FONT}`;
    pen.textAlign = isLast ? "right" : "left";
    pen.fillText(glyph, isLast ? x - 3 : x + 3, 10);
  }
}

/** At the upper edge where the limit is above the view. */
export function paintLimitName(
  pen: Pen,
  frame: Frame,
  { limit }: ChartData,
  theme: Theme,
): void {
  if (limit === null) return;
  const { heightPx } = frame.size;
  const y = projectY(frame)(limit.value);
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillStyle = tokens(theme).bad;
  if (y < 0) {
    if (heightPx >= ROOMY_PX) haloText(pen, theme, `▲ ${limit.label}`, 6, 12);
  } else if (y <= heightPx) {
    haloText(pen, theme, limit.label, 6, y > 16 ? y - 6 : y + 14);
  }
}

/** Fills, band, lines (strong ones last), limit. */
export function paintLines(
  pen: Pen,
  frame: Frame,
  data: ChartData,
  theme: Theme,
): void {
  const { hidden, limit, smoothing, fills = [], band } = data;
  const { x0: low, x1: high } = frame.view;
  const [toX, toY] = [projectX(frame), projectY(frame)];
  const { link, bad } = tokens(theme);
  type Of = Pick<ChartLine, "isStepped" | "x">;
  const fill = (
    { x }: Of,
    lower: Float64Array,
    upper: Float64Array,
    colour: string,
    opacity: number,
  ): void => {
    pen.beginPath();
    for (const run of area(x, lower, upper, low, high, toX, toY)) {
      traceRun(pen, run);
      pen.closePath();
    }
    pen.globalAlpha = opacity;
    pen.fillStyle = colour;
    pen.fill();
  };
  const stroke = (
    { x, isStepped = false }: Of,
    y: Float64Array,
    colour: string,
    opacity: number,
    widthPx: number,
    dash: readonly number[] = [],
  ): void => {
    const [xs, ys] = isStepped ? [twice(x, 1), twice(y, 0)] : [x, y];
    pen.beginPath();
    for (const run of polyline(xs, ys, low, high, toX, toY)) traceRun(pen, run);
    pen.globalAlpha = opacity;
    pen.strokeStyle = colour;
    pen.lineWidth = widthPx;
    pen.setLineDash(dash);
    pen.stroke();
  };
  // Round joins take most of the time of a line with thousands of corners.
  pen.lineJoin = "bevel";
  for (const chartFill of fills)
    fill(chartFill, chartFill.low, chartFill.high, chartFill.colour, 0.3);
  if (band !== null && !hidden.has(BAND_ID)) {
    const [outer, inner] = theme === "dark" ? [0.2, 0.3] : [0.14, 0.24];
    fill(band, band.low, band.high, link, outer);
    fill(band, band.p5, band.p95, link, inner);
    stroke(band, band.high, link, 0.55, 1);
    stroke(band, band.low, link, 0.35, 1);
    stroke(band, band.median, link, 1, 1.75);
  }
  const ordered = [...visibleLines(data)].sort(
    (a, b) => Number(a.weight === "strong") - Number(b.weight === "strong"),
  );
  for (const line of ordered) {
    const { y, yLow } = line;
    const colour = lineColour(theme, line.colour);
    const wide = line.weight === "strong" ? 2.25 : 1.5;
    const dash = dashOf(line.colour);
    const isSmooth = smoothing > 0;
    if (yLow !== y) fill(line, yLow, y, colour, isSmooth ? 0.1 : 0.22);
    stroke(line, y, colour, isSmooth ? RAW_OPACITY : 1, wide, dash);
    if (isSmooth) stroke(line, smooth(y, smoothing), colour, 1, wide, dash);
  }
  const y = limit === null ? NaN : toY(limit.value);
  pen.globalAlpha = 0.9;
  pen.strokeStyle = bad;
  pen.lineWidth = 1.25;
  pen.setLineDash([7, 4]);
  if (y >= 0 && y <= frame.size.heightPx) strokeLine(pen, 0, y, frame.size.widthPx, y);
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

/** Each value twice from `from` on: corners of steps. */
function twice(values: Float64Array, from: 0 | 1): Float64Array {
  const num = Math.max(0, 2 * values.length - 1);
  return Float64Array.from({ length: num }, (_, i) => values[(i + from) >> 1] ?? NaN);
}

function traceRun(pen: Pen, run: Float64Array): void {
  const [x = 0, y = 0] = run;
  // A lone point has no length: draw a short dash.
  const isLone = run.length === 2;
  pen.moveTo(isLone ? x - 1.5 : x, y);
  if (isLone) pen.lineTo(x + 1.5, y);
  for (let i = 2; i < run.length; i += 2) pen.lineTo(run[i] ?? 0, run[i + 1] ?? 0);
}
