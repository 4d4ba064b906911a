/** Axes, the pinned step and the cursor of the stacked parts, on canvases in CSS px. */

import { tokens, type Theme } from "../../base/tokens";
import { valueTicks, xTicks } from "../../model/lines/axis";
import type { RectPx, SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import { drawQuadsOn } from "../stack_frame/canvas";
import { columnOfStep, columnsWithin, stackQuads } from "./layout";
import type { StackedSteps } from "./types";

/** Left and right as in the line charts, so that plots stand below each other. */
export const GUTTER = { left: 72, right: 14, top: 12, bottom: 26 } as const;

const FONT = "11px Roboto, Helvetica, Arial, sans-serif";
const TICK_PX = 96;

export interface StackPaint {
  readonly answer: StackedSteps;
  readonly view: Viewport;
  readonly size: SizePx;
  readonly theme: Theme;
  readonly colours: readonly string[];
  readonly pinned: number | null;
}

/** The stack itself. */
export function drawCells(canvas: HTMLCanvasElement | null, paint: StackPaint): void {
  const { answer, view, size, theme, colours } = paint;
  const quads = stackQuads(answer, colours, tokens(theme).bg, view, size);
  drawQuadsOn(canvas, quads, view, size, theme);
}

type Line = readonly [x0: number, y0: number, x1: number, y1: number];

function stroke(context: CanvasRenderingContext2D, [x0, y0, x1, y1]: Line): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

export function paintFrame(context: CanvasRenderingContext2D, paint: StackPaint): void {
  paintAxes(context, paint);
  paintCut(context, paint);
  paintPinned(context, paint);
}

function paintAxes(context: CanvasRenderingContext2D, paint: StackPaint): void {
  const { view, size, theme, answer } = paint;
  const { secondary, border } = tokens(theme);
  const bottom = GUTTER.top + size.heightPx;
  context.font = FONT;
  context.lineWidth = 1;
  context.strokeStyle = border;
  context.fillStyle = secondary;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  const most = Math.max(2, Math.floor(size.widthPx / TICK_PX));
  for (const tick of xTicks(view.x0, view.x1, most, answer.x)) {
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, tick.value)) + 0.5;
    stroke(context, [x, bottom, x, bottom + 4]);
    context.fillText(tick.text, x, bottom + 16);
  }
  context.textAlign = "right";
  const rows = Math.max(2, Math.floor(size.heightPx / 36));
  for (const tick of valueTicks(0, view.y0, rows, "seconds")) {
    const y = Math.round(GUTTER.top + yToPx(view, size.heightPx, tick.value)) + 0.5;
    context.globalAlpha = 0.7;
    stroke(context, [GUTTER.left, y, GUTTER.left + size.widthPx, y]);
    context.globalAlpha = 1;
    context.fillText(tick.text, GUTTER.left - 8, y + 4);
  }
}

/** A mark over every column that is higher than the plot: nothing is cut in silence. */
function paintCut(context: CanvasRenderingContext2D, paint: StackPaint): void {
  const { answer, view, size, theme } = paint;
  context.fillStyle = tokens(theme).bad;
  for (const column of columnsWithin(answer, view.x0, view.x1)) {
    if (!((answer.seconds[column] ?? NaN) > view.y0)) continue;
    const [x0 = NaN, x1 = NaN] = [answer.edges[column], answer.edges[column + 1]];
    const x = GUTTER.left + xToPx(view, size.widthPx, (x0 + x1) / 2);
    context.beginPath();
    context.moveTo(x - 4, GUTTER.top - 2);
    context.lineTo(x + 4, GUTTER.top - 2);
    context.lineTo(x, GUTTER.top - 9);
    context.fill();
  }
}

function paintPinned(context: CanvasRenderingContext2D, paint: StackPaint): void {
  const { answer, view, size, theme, pinned } = paint;
  const column = pinned === null ? -1 : columnOfStep(answer, pinned);
  const [x0 = NaN, x1 = NaN] = [answer.edges[column], answer.edges[column + 1]];
  if (!(x1 > view.x0 && x0 < view.x1)) return;
  const left = Math.max(0, xToPx(view, size.widthPx, x0));
  const right = Math.min(size.widthPx, xToPx(view, size.widthPx, x1));
  context.strokeStyle = tokens(theme).text;
  context.lineWidth = 1.5;
  const width = Math.max(3, right - left);
  context.strokeRect(
    GUTTER.left + left - 0.5,
    GUTTER.top - 1,
    width,
    size.heightPx + 1,
  );
}

/** The line under the pointer, and the box being drawn. */
export function paintCursor(
  context: CanvasRenderingContext2D,
  paint: Pick<StackPaint, "view" | "size" | "theme">,
  cursor: number | null,
  box: RectPx | null,
): void {
  const { view, size, theme } = paint;
  const { text, link } = tokens(theme);
  context.lineWidth = 1;
  if (cursor !== null && cursor >= view.x0 && cursor <= view.x1) {
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, cursor)) + 0.5;
    context.strokeStyle = text;
    stroke(context, [x, GUTTER.top, x, GUTTER.top + size.heightPx]);
  }
  if (box === null) return;
  context.strokeStyle = link;
  context.strokeRect(GUTTER.left + box.x, GUTTER.top, box.width, size.heightPx);
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
