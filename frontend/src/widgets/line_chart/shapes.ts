/**
 * What the chart draws, as shapes in px. Pure.
 */

import type { Project, Runs } from "../../model/lines/polyline";
import { area, polyline, valueRange } from "../../model/lines/polyline";
import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import type { Pen } from "../export/pen";
import { dashOf, lineColour } from "./palette";
import { yToPx } from "../../render/viewport";
import type { XRange } from "../plot/range";
import type { Seen } from "../plot/reader";
import type { ChartBand, ChartFill, ChartLimit, ChartLine } from "./types";

interface Shape {
  readonly kind: "fill" | "stroke";
  readonly runs: Runs;
  readonly colour: string;
  readonly opacity: number;
  /** Strokes only. */
  readonly widthPx: number;
  readonly dash: readonly number[];
}

/** What is shown of the plane, and on how many px. */
export interface Frame extends Pick<Seen, "size" | "view"> {
  readonly logScale: boolean;
}

export interface ChartData {
  readonly lines: readonly ChartLine[];
  readonly band: ChartBand | null;
  readonly limit: ChartLimit | null;
  /** Ids that are not drawn; BAND_ID hides the band. */
  readonly hidden: ReadonlySet<string>;
  readonly smoothing: number;
  readonly fills?: readonly ChartFill[];
}

export const BAND_ID = "band";

export function projectX({ view, size }: Frame): Project {
  const scale = size.widthPx / (view.x1 - view.x0 || 1);
  return (value) => (value - view.x0) * scale;
}

export function projectY({ view, size, logScale }: Frame): Project {
  const { heightPx } = size;
  if (!logScale) return (value) => yToPx(view, heightPx, value);
  const bottom = Math.log(view.y1);
  const scale = heightPx / (Math.log(view.y0) - bottom || 1);
  // What is not above zero has no place here: NaN breaks the line.
  return (value) => (value > 0 ? heightPx - (Math.log(value) - bottom) * scale : NaN);
}

/** The limit belongs into the picture once the data reach this share of it. */
const NEAR_LIMIT = 0.4;

/** The y range that shows everything visible in `x`, with a little air. */
export function fitY(
  data: ChartData,
  x: XRange,
  options: { readonly logScale: boolean; readonly fromZero: boolean },
): XRange {
  let low = Infinity;
  let high = -Infinity;
  const take = (range: readonly [number, number] | null): void => {
    if (range === null) return;
    low = Math.min(low, range[0]);
    high = Math.max(high, range[1]);
  };
  for (const line of data.lines) {
    if (data.hidden.has(line.id)) continue;
    take(valueRange(line.x, [line.y, line.yLow], x.low, x.high));
  }
  const { band } = data;
  if (band !== null && !data.hidden.has(BAND_ID)) {
    take(valueRange(band.x, [band.low, band.high], x.low, x.high));
  }
  if (!(high >= low)) [low, high] = [0, data.limit?.value ?? 1];
  const limit = data.limit?.value ?? NaN;
  if (limit > 0 && high >= limit * NEAR_LIMIT && options.fromZero) {
    high = Math.max(high, limit);
  }
  if (options.logScale) {
    const bottom = low > 0 ? low : Math.max(high / 1e6, Number.MIN_VALUE);
    return { low: bottom / 1.2, high: Math.max(high, bottom) * 1.2 };
  }
  if (options.fromZero && low > 0) low = 0;
  const air = (high - low || Math.abs(high) || 1) * 0.06;
  return { low: low === 0 ? 0 : low - air, high: high + air };
}

export function visibleLines(data: ChartData): readonly ChartLine[] {
  return data.lines.filter((line) => !data.hidden.has(line.id));
}

/** How faint the raw line is beside its smoothed one. */
const RAW_OPACITY = 0.28;

/** Fills below, then the band and lines, strong ones last, the limit on top. */
export function chartShapes(
  data: ChartData,
  frame: Frame,
  theme: Theme,
): readonly Shape[] {
  const { hidden, limit, smoothing, fills = [] } = data;
  const { x0: low, x1: high } = frame.view;
  const [toX, toY] = [projectX(frame), projectY(frame)];
  const { link, bad } = tokens(theme);
  type Of = Pick<ChartLine, "x" | "isStepped">;
  const fill = (
    { x }: Of,
    lower: Float64Array,
    upper: Float64Array,
    colour: string,
    opacity: number,
  ): Shape => ({
    ...{ kind: "fill", colour, opacity, widthPx: 0, dash: [] },
    runs: area(x, lower, upper, low, high, toX, toY),
  });
  const stroke = (
    { x, isStepped = false }: Of,
    y: Float64Array,
    colour: string,
    opacity: number,
    widthPx: number,
    dash: readonly number[] = [],
  ): Shape => ({
    ...{ kind: "stroke", colour, opacity, widthPx, dash },
    runs: isStepped
      ? polyline(twice(x, 1), twice(y, 0), low, high, toX, toY)
      : polyline(x, y, low, high, toX, toY),
  });
  const shapes = fills.map((one) => fill(one, one.low, one.high, one.colour, 0.3));
  const { band } = data;
  if (band !== null && !hidden.has(BAND_ID)) {
    const [outer, inner] = theme === "dark" ? [0.2, 0.3] : [0.14, 0.24];
    shapes.push(
      fill(band, band.low, band.high, link, outer),
      fill(band, band.p5, band.p95, link, inner),
      stroke(band, band.high, link, 0.55, 1),
      stroke(band, band.low, link, 0.35, 1),
      stroke(band, band.median, link, 1, 1.75),
    );
  }
  const ordered = [...visibleLines(data)].sort(
    (a, b) => Number(a.weight === "strong") - Number(b.weight === "strong"),
  );
  for (const line of ordered) {
    const { y, yLow } = line;
    const colour = lineColour(theme, line.colour);
    const wide = line.weight === "strong" ? 2.25 : 1.5;
    const dash = dashOf(line.colour, line.dash);
    const isSmooth = smoothing > 0;
    if (yLow !== y) shapes.push(fill(line, yLow, y, colour, isSmooth ? 0.1 : 0.22));
    shapes.push(stroke(line, y, colour, isSmooth ? RAW_OPACITY : 1, wide, dash));
    if (isSmooth)
      shapes.push(stroke(line, smooth(y, smoothing), colour, 1, wide, dash));
  }
  const y = limit === null ? NaN : toY(limit.value);
  if (y >= 0 && y <= frame.size.heightPx) {
    const runs = [Float64Array.of(0, y, frame.size.widthPx, y)];
    const look = { colour: bad, opacity: 0.9, widthPx: 1.25, dash: [7, 4] };
    shapes.push({ kind: "stroke", runs, ...look });
  }
  return shapes;
}

/** Each value twice, from the given place on: corners of steps. */
function twice(values: Float64Array, from: 0 | 1): Float64Array {
  const num = Math.max(0, 2 * values.length - 1);
  return Float64Array.from({ length: num }, (_, i) => values[(i + from) >> 1] ?? NaN);
}

/** A lone point has no length; draw it as a short dash so that it is seen. */
function visibleRun(run: Float64Array): Float64Array {
  if (run.length !== 2) return run;
  const [x = 0, y = 0] = run;
  return Float64Array.of(x - 1.5, y, x + 1.5, y);
}

/** Paint shapes; the context is moved so that the plot's corner is its origin. */
export function paintShapes(pen: Pen, shapes: readonly Shape[]): void {
  // Round joins cost most of a dense line's time, and it has thousands of corners.
  pen.lineJoin = "bevel";
  for (const shape of shapes) {
    pen.beginPath();
    for (const whole of shape.runs) {
      const run = shape.kind === "stroke" ? visibleRun(whole) : whole;
      pen.moveTo(run[0] ?? 0, run[1] ?? 0);
      for (let i = 2; i < run.length; i += 2) {
        pen.lineTo(run[i] ?? 0, run[i + 1] ?? 0);
      }
      if (shape.kind === "fill") pen.closePath();
    }
    pen.globalAlpha = shape.opacity;
    if (shape.kind === "fill") {
      pen.fillStyle = shape.colour;
      pen.fill();
    } else {
      pen.strokeStyle = shape.colour;
      pen.lineWidth = shape.widthPx;
      pen.setLineDash([...shape.dash]);
      pen.stroke();
    }
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

/**
 * Exponential moving average without start-up bias, as TensorBoard's Scalars smooth.
 * Gaps stay gaps and do not pull the average.
 */
export function smooth(y: Float64Array, weight: number): Float64Array {
  if (weight <= 0) return y;
  const out = new Float64Array(y.length).fill(NaN);
  let sum = 0;
  let total = 0;
  for (let i = 0; i < y.length; i += 1) {
    const value = y[i] ?? NaN;
    if (!Number.isFinite(value)) continue;
    sum = sum * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    out[i] = sum / total;
  }
  return out;
}
