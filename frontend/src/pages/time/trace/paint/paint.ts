import { counted } from "../../../../base/bytes";
import { tokens } from "../../../../base/tokens";
import { inkOn } from "../../../../widgets/block_stack/paint/colours";
import { FONT } from "../../../../widgets/export/pen";
import { foldTemplates } from "../../../shared/table/kernel_name";
import { laneTop, LANE_PX, rowsBetween, type Place } from "../plot/layout";
import { formatNs } from "../text";
import { fitting, MARK_PX, widthOf, type Canvas } from "./canvas";
import { firstStep, paintCounters, paintInstants } from "./lines";

export function paintOverlay(canvas: Canvas): void {
  const { context, trace, hovered, box, toX, heightPx } = canvas;
  const { selected, related } = trace;
  const { bg, link, secondary, text } = tokens(trace.view.theme);
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  paintHeads(canvas);
  paintSteps(canvas);
  paintCounters(canvas);
  paintLabels(canvas);
  paintInstants(canvas);
  paintRange(canvas);
  const [mark, cursor] = [trace.mark.peek(), trace.cursor.peek()];
  context.fillStyle = link;
  if (mark !== null) context.fillRect(Math.round(toX(mark)), 0, 2, heightPx);
  for (const place of related) outline(canvas, place, link, 1);
  if (selected !== null) {
    for (const place of related) {
      if (place.outgoing) paintArrow(canvas, selected, place);
      else paintArrow(canvas, place, selected);
    }
    outline(canvas, selected, bg, 4);
  }
  if (hovered !== null) outline(canvas, hovered, text, 1);
  if (selected !== null) outline(canvas, selected, link, 2);
  if (box !== null) {
    const { x, y, width, height } = box;
    context.strokeStyle = context.fillStyle = link;
    context.lineWidth = 1;
    context.strokeRect(x, y, width, height);
    context.globalAlpha = 0.14;
    context.fillRect(x, y, width, height);
  }
  context.fillStyle = secondary;
  context.globalAlpha = 0.5;
  if (cursor !== null) context.fillRect(Math.round(toX(cursor)), 0, 1, heightPx);
  context.globalAlpha = 1;
}

function paintHeads({ context, layout, view, widthPx, trace }: Canvas): void {
  const { surface, border } = tokens(trace.view.theme);
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

function paintSteps({ context, trace, view, heightPx, toX }: Canvas): void {
  const { steps } = trace.answer;
  const { theme } = trace.view;
  context.fillStyle = tokens(theme).link;
  context.globalAlpha = theme === "dark" ? 0.4 : 0.28;
  let last = -Infinity;
  for (let i = firstStep(steps, view.x0); i < steps.number.length; i += 1) {
    const start = steps.startNs[i] ?? 0;
    if (start > view.x1) break;
    const x = Math.round(toX(start));
    // Closer lines would merge into grey.
    if (x - last < 6) continue;
    last = x;
    context.fillRect(x, 0, 1, heightPx);
  }
  context.globalAlpha = 1;
}

function paintRange(canvas: Canvas): void {
  const { context, trace, toX, widthPx, heightPx, layout, view } = canvas;
  const { rangeKeys } = trace;
  const { range, rangeTracks } = trace.state;
  if (range === null) return;
  const { bg, link } = tokens(trace.view.theme);
  const [left, right] = [toX(range.low), toX(range.high)];
  context.fillStyle = bg;
  context.globalAlpha = 0.6;
  if (left > 0) context.fillRect(0, 0, Math.min(left, widthPx), heightPx);
  if (right < widthPx) context.fillRect(Math.max(0, right), 0, widthPx, heightPx);
  if (rangeTracks !== "") {
    for (const row of rowsBetween(layout, view.y0, view.y1)) {
      if (!rangeKeys.has(row.key))
        context.fillRect(left, row.y - view.y0, right - left, row.heightPx);
    }
  }
  context.fillStyle = link;
  context.globalAlpha = 0.9;
  context.fillRect(Math.round(left), 0, 1, heightPx);
  context.fillRect(Math.round(right), 0, 1, heightPx);
  context.globalAlpha = 1;
  const text = formatNs(range.high - range.low);
  const wide = widthOf(context, text) + 2 * PAD_PX;
  const from = Math.min(Math.max((left + right - wide) / 2, 0), widthPx - wide);
  context.fillRect(from, 2, wide, LANE_PX);
  context.fillStyle = bg;
  context.fillText(text, from + PAD_PX, 2 + LANE_PX / 2);
}

/** Narrower slices have no name. */
const LABEL_LEAST_PX = 24;
const MOST_LABELS = 900;
const PAD_PX = 4;

function paintLabels(canvas: Canvas): void {
  const { context, picture, view, widthPx, heightPx } = canvas;
  const { quads } = picture;
  const perPx = (view.x1 - view.x0) / widthPx;
  const least = LABEL_LEAST_PX * perPx;
  let painted = 0;
  for (let i = 0; i < quads.colour.length && painted < MOST_LABELS; i += 1) {
    const start = Math.max(quads.x0[i] ?? 0, view.x0);
    const end = Math.min(quads.x1[i] ?? 0, view.x1);
    if (end - start < least) continue;
    const top = (quads.y0[i] ?? 0) - view.y0;
    if (top + LANE_PX < 0 || top > heightPx) continue;
    const piece = picture.pieceOf(i);
    if (piece === null) continue;
    const { count, name } = piece;
    const text = count > 1 ? counted(count, "slice") : foldTemplates(name);
    const x = canvas.toX(start);
    const room = (end - start) / perPx - 2 * PAD_PX;
    const label = fitting(text, widthOf(context, text), room);
    if (label === "") continue;
    painted += 1;
    context.fillStyle = inkOn(quads.colour[i] ?? 0);
    context.fillText(label, x + PAD_PX, top + LANE_PX / 2);
  }
}

/** null: folded or filtered out. */
function boxOf({ layout, view, toX, widthPx }: Canvas, place: Place) {
  const { trackKey, level, startNs, endNs } = place;
  const top = laneTop(layout, trackKey, level);
  if (top === null) return null;
  const y = top - view.y0;
  if (level < 0) {
    const half = MARK_PX + 3;
    return { x: toX(startNs) - half, y, width: 2 * half };
  }
  const x = Math.max(-4, toX(startNs));
  return { x, y, width: Math.max(2, Math.min(widthPx + 4, toX(endNs)) - x) };
}

function outline(canvas: Canvas, place: Place, colour: string, px: number): void {
  const box = boxOf(canvas, place);
  if (box === null || box.x > canvas.widthPx || box.x + box.width < 0) return;
  const { context } = canvas;
  context.strokeStyle = colour;
  context.lineWidth = px;
  context.strokeRect(box.x, box.y, box.width, LANE_PX - 1);
}

/** From end to start, or from start to start where the slices overlap. */
function paintArrow(canvas: Canvas, from: Place, to: Place): void {
  const [fromBox, toBox] = [boxOf(canvas, from), boxOf(canvas, to)];
  if (fromBox === null || toBox === null) return;
  const { context, trace, toX } = canvas;
  const { link, bg } = tokens(trace.view.theme);
  const x0 = toX(to.startNs < from.endNs ? from.startNs : from.endNs);
  const x1 = toX(to.startNs);
  const [y0, y1] = [fromBox.y + LANE_PX / 2, toBox.y + LANE_PX / 2];
  const bend = Math.max(24, Math.min(120, Math.abs(x1 - x0) / 2));
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
  context.strokeStyle = bg;
  context.lineWidth = 4;
  context.globalAlpha = 0.8;
  context.stroke();
  context.globalAlpha = 1;
  context.strokeStyle = link;
  context.lineWidth = 1.75;
  context.stroke();
  context.fillStyle = link;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 8, y1 - 4);
  context.lineTo(x1 - 8, y1 + 4);
  context.fill();
}
