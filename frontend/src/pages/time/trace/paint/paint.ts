/** What lies over the raster: headings, steps, counters, labels, selections, the cursor. */

import { tokens } from "../../../../base/tokens";
import { xToPx } from "../../../../render/viewport";
import { rowsBetween, LANE_PX } from "../plot/layout";
import { firstStep, type Canvas, type OverlayPaint } from "./canvas";
import { paintCounters } from "./counters";
import { paintInstants } from "./instants";
import { outline, paintArrow } from "./links";
import { FONT, fitting, widthOf } from "./text";
import { isLight } from "./colours";

export function paintOverlay(
  context: CanvasRenderingContext2D,
  paint: OverlayPaint,
): void {
  const { view, widthPx } = paint;
  const toX = (ns: number): number => xToPx(view, widthPx, ns);
  const canvas: Canvas = { ...paint, context, toX };
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  paintHeads(canvas);
  paintSteps(canvas);
  paintCounters(canvas);
  paintLabels(canvas);
  paintInstants(canvas);
  paintRange(canvas);
  for (const place of paint.related) outline(canvas, place, "related");
  for (const arrow of paint.arrows) paintArrow(canvas, arrow);
  if (paint.hovered !== null) outline(canvas, paint.hovered, "hovered");
  if (paint.selected !== null) outline(canvas, paint.selected, "selected");
  if (paint.cursorNs !== null) {
    context.fillStyle = tokens(paint.theme).secondary;
    context.globalAlpha = 0.5;
    context.fillRect(Math.round(toX(paint.cursorNs)), 0, 1, paint.heightPx);
    context.globalAlpha = 1;
  }
}

function paintHeads({ context, layout, view, widthPx, theme }: Canvas): void {
  const { surface, border } = tokens(theme);
  for (const row of rowsBetween(layout, view.y0, view.y1)) {
    const top = row.y - view.y0;
    if (row.kind === "track") {
      context.fillStyle = border;
      context.globalAlpha = 0.5;
      context.fillRect(0, Math.round(top + row.heightPx) - 1, widthPx, 1);
      context.globalAlpha = 1;
      continue;
    }
    context.fillStyle = row.kind === "rank" ? border : surface;
    context.fillRect(0, top, widthPx, row.heightPx);
  }
}

function paintSteps({ context, steps, view, heightPx, theme, toX }: Canvas): void {
  context.fillStyle = tokens(theme).link;
  context.globalAlpha = theme === "dark" ? 0.4 : 0.28;
  let last = -Infinity;
  for (let i = firstStep(steps, view.x0); i < steps.number.length; i += 1) {
    const start = steps.startNs[i] ?? 0;
    if (start > view.x1) break;
    const x = Math.round(toX(start));
    // Closer together they would be a grey wash.
    if (x - last < 6) continue;
    last = x;
    context.fillRect(x, 0, 1, heightPx);
  }
  context.globalAlpha = 1;
}

function paintRange({ context, range, toX, widthPx, heightPx, theme }: Canvas): void {
  if (range === null) return;
  const [left, right] = [toX(range.low), toX(range.high)];
  context.fillStyle = tokens(theme).bg;
  context.globalAlpha = 0.6;
  if (left > 0) context.fillRect(0, 0, Math.min(left, widthPx), heightPx);
  if (right < widthPx) context.fillRect(Math.max(0, right), 0, widthPx, heightPx);
  context.fillStyle = tokens(theme).link;
  context.globalAlpha = 0.9;
  context.fillRect(Math.round(left), 0, 1, heightPx);
  context.fillRect(Math.round(right), 0, 1, heightPx);
  context.globalAlpha = 1;
}

/** Names on the slices that are wide enough for them. */
const LABEL_LEAST_PX = 24;
const MOST_LABELS = 900;
const PAD_PX = 4;

function paintLabels(canvas: Canvas): void {
  const { context, picture, view, widthPx, heightPx } = canvas;
  const { quads } = picture;
  const perPx = (view.x1 - view.x0) / widthPx;
  const least = LABEL_LEAST_PX * perPx;
  let painted = 0;
  for (let i = 0; i < quads.id.length && painted < MOST_LABELS; i += 1) {
    const start = Math.max(quads.x0[i] ?? 0, view.x0);
    const end = Math.min(quads.x1[i] ?? 0, view.x1);
    if (end - start < least) continue;
    const top = (quads.y0[i] ?? 0) - view.y0;
    if (top + LANE_PX < 0 || top > heightPx) continue;
    const tile = picture.tiles[picture.tile[i] ?? 0];
    const piece = picture.piece[i] ?? 0;
    if (tile === undefined) continue;
    const count = tile.answer.count[piece] ?? 1;
    const name = tile.nameOf(piece);
    const text = count > 1 ? `${count.toLocaleString("en-US")} slices` : name;
    const x = canvas.toX(start);
    const room = (end - start) / perPx - 2 * PAD_PX;
    const words = fitting(text, widthOf(context, text), room);
    if (words === "") continue;
    painted += 1;
    context.fillStyle = isLight(quads.colour[i] ?? 0) ? "#1c1c1c" : "#ffffff";
    context.fillText(words, x + PAD_PX, top + LANE_PX / 2);
  }
}
