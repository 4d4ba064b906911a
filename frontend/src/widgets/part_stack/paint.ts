/** The stacked parts with axes and the pinned step, on a canvas or in a picture. */

import { tokens, type Theme } from "../../base/tokens";
import { valueTicks, xTicks } from "../../model/lines/axis";
import type { SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import type { Pen } from "../export/pen";
import { AXIS_PX, SIDES } from "../plot/axes";
import { paintStacked } from "../plot/bands";
import { bandsOf, columnOfStep, columnsWithin, profiledIn } from "./layout";
import type { StackedSteps } from "./types";

export const GUTTER = { ...SIDES, top: 12, bottom: AXIS_PX } as const;

const TICK_PX = 96;
const VEIL = 0.7;
const BAND_LOOK = { edgedPx: 5, linedPx: 3, apartPx: 6 };

export interface StackPaint {
  readonly answer: StackedSteps;
  readonly view: Viewport;
  readonly size: SizePx;
  readonly theme: Theme;
  readonly colours: readonly string[];
  readonly pinned: number | null;
}

export function paintStack(pen: Pen, paint: StackPaint): void {
  const { answer, view, size, theme, colours } = paint;
  const { left, top } = GUTTER;
  const most = Math.max(2, Math.floor(size.widthPx / TICK_PX));
  const rows = Math.max(2, Math.floor(size.heightPx / 36));
  const stack = {
    ...bandsOf(answer),
    ...{ left, top, size, theme },
    x: xTicks(view.x0, view.x1, most, answer.x),
    y: valueTicks(0, view.y0, rows, "seconds"),
  };
  paintStacked(pen, stack, { ...BAND_LOOK, colours }, view, () => paintOwn(pen, paint));
  paintCut(pen, paint);
  paintPinned(pen, paint);
}

/** Steps whose time is the profiler's own are veiled: they are not the training's. */
function paintOwn(pen: Pen, { answer, view, size, theme }: StackPaint): void {
  pen.fillStyle = tokens(theme).bg;
  pen.globalAlpha = VEIL;
  for (const column of columnsWithin(answer, view.x0, view.x1)) {
    if (profiledIn(answer, column) === null) continue;
    const [x0 = NaN, x1 = NaN] = [answer.edges[column], answer.edges[column + 1]];
    const left = xToPx(view, size.widthPx, x0);
    pen.fillRect(left, 0, xToPx(view, size.widthPx, x1) - left, size.heightPx);
  }
  pen.globalAlpha = 1;
}

/** A mark over every column that is higher than the plot: nothing is cut in silence. */
function paintCut(pen: Pen, paint: StackPaint): void {
  const { answer, view, size, theme } = paint;
  pen.fillStyle = tokens(theme).bad;
  for (const column of columnsWithin(answer, view.x0, view.x1)) {
    if (!((answer.seconds[column] ?? NaN) > view.y0)) continue;
    const [x0 = NaN, x1 = NaN] = [answer.edges[column], answer.edges[column + 1]];
    const x = GUTTER.left + xToPx(view, size.widthPx, (x0 + x1) / 2);
    pen.beginPath();
    pen.moveTo(x - 4, GUTTER.top - 2);
    pen.lineTo(x + 4, GUTTER.top - 2);
    pen.lineTo(x, GUTTER.top - 9);
    pen.fill();
  }
}

function paintPinned(pen: Pen, paint: StackPaint): void {
  const { answer, view, size, theme, pinned } = paint;
  const column = pinned === null ? -1 : columnOfStep(answer, pinned);
  const [x0 = NaN, x1 = NaN] = [answer.edges[column], answer.edges[column + 1]];
  if (!(x1 > view.x0 && x0 < view.x1)) return;
  const left = Math.max(0, xToPx(view, size.widthPx, x0));
  const right = Math.min(size.widthPx, xToPx(view, size.widthPx, x1));
  pen.strokeStyle = tokens(theme).text;
  pen.lineWidth = 1.5;
  const width = Math.max(3, right - left);
  pen.strokeRect(GUTTER.left + left - 0.5, GUTTER.top - 1, width, size.heightPx + 1);
}

/** The steps' time without its parts, for a strip that shows everything. */
export function drawSilhouette(
  context: CanvasRenderingContext2D,
  answer: StackedSteps,
  extent: { readonly low: number; readonly high: number },
  top: number,
  theme: Theme,
  size: SizePx,
): void {
  const view = { x0: extent.low, x1: extent.high, y0: top, y1: 0 };
  context.fillStyle = tokens(theme).secondary;
  context.globalAlpha = 0.55;
  for (const column of columnsWithin(answer, extent.low, extent.high)) {
    const value = Math.min(answer.seconds[column] ?? NaN, top);
    if (!(value > 0)) continue;
    const left = Math.floor(xToPx(view, size.widthPx, answer.edges[column] ?? NaN));
    const right = Math.ceil(xToPx(view, size.widthPx, answer.edges[column + 1] ?? NaN));
    const y = yToPx(view, size.heightPx, value);
    // Half of two fills laid over each other would be darker than one.
    context.clearRect(left, y, right - left, size.heightPx - y);
    context.fillRect(left, y, right - left, size.heightPx - y);
  }
  context.globalAlpha = 1;
}
