/** What lies over the raster: headings, steps, counters, labels, selections, the cursor. */

import { tokens } from "../../../../base/tokens";
import type { Viewport } from "../../../../render/viewport";
import { cutMiddle, foldTemplates } from "../../profiled/kernel_name";
import {
  laneTop,
  LANE_PX,
  rowsBetween,
  type Arrow,
  type Layout,
  type Place,
} from "../plot/layout";
import type { Timeline } from "../state/timeline";
import type { Piece } from "../tiles/tile";
import { formatNs } from "../words";
import { firstStep, paintCounters, paintInstants } from "./lines";
import { isLight, type Picture } from "./quads";

/** What is painted, and where. */
export interface Canvas {
  readonly context: CanvasRenderingContext2D;
  readonly trace: Timeline;
  readonly layout: Layout;
  readonly picture: Picture;
  readonly hovered: Piece | null;
  readonly view: Viewport;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly toX: (ns: number) => number;
}

/** Half of what an instant takes. */
export const MARK_PX = 5;

export function paintOverlay(canvas: Canvas): void {
  const { context, trace, hovered, toX, heightPx } = canvas;
  const { selected, related, arrows } = trace;
  const { link, secondary } = tokens(trace.view.theme);
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
  for (const place of related) outline(canvas, place, "related");
  for (const arrow of arrows) paintArrow(canvas, arrow);
  if (hovered !== null) outline(canvas, hovered, "hovered");
  if (selected !== null) outline(canvas, selected, "selected");
  if (cursor === null) return;
  context.fillStyle = secondary;
  context.globalAlpha = 0.5;
  context.fillRect(Math.round(toX(cursor)), 0, 1, heightPx);
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
    // Closer together they would be a grey wash.
    if (x - last < 6) continue;
    last = x;
    context.fillRect(x, 0, 1, heightPx);
  }
  context.globalAlpha = 1;
}

function paintRange({ context, trace, toX, widthPx, heightPx }: Canvas): void {
  const { range } = trace.state;
  if (range === null) return;
  const { bg, link } = tokens(trace.view.theme);
  const [left, right] = [toX(range.low), toX(range.high)];
  context.fillStyle = bg;
  context.globalAlpha = 0.6;
  if (left > 0) context.fillRect(0, 0, Math.min(left, widthPx), heightPx);
  if (right < widthPx) context.fillRect(Math.max(0, right), 0, widthPx, heightPx);
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
  for (let i = 0; i < quads.colour.length && painted < MOST_LABELS; i += 1) {
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
    const text =
      count > 1 ? `${count.toLocaleString("en-US")} slices` : foldTemplates(name);
    const x = canvas.toX(start);
    const room = (end - start) / perPx - 2 * PAD_PX;
    const words = fitting(text, widthOf(context, text), room);
    if (words === "") continue;
    painted += 1;
    context.fillStyle = isLight(quads.colour[i] ?? 0) ? "#1c1c1c" : "#ffffff";
    context.fillText(words, x + PAD_PX, top + LANE_PX / 2);
  }
}

export const FONT = "11px Roboto, Helvetica, Arial, sans-serif";

const widths = new Map<string, number>();

export function widthOf(context: CanvasRenderingContext2D, text: string): number {
  const known = widths.get(text);
  if (known !== undefined) return known;
  const width = context.measureText(text).width;
  if (widths.size > 20_000) widths.clear();
  widths.set(text, width);
  return width;
}

/** A text, cut in its middle where it does not fit; "" where that says nothing. */
export function fitting(text: string, wide: number, room: number): string {
  if (wide <= room) return text;
  const letters = Math.floor((room - 8) / (wide / Math.max(1, text.length)));
  return letters < 3 ? "" : cutMiddle(text, letters + 1);
}

function boxOf(
  { layout, view, toX, widthPx }: Canvas,
  place: Place,
): { readonly x: number; readonly y: number; readonly width: number } | null {
  const top = laneTop(layout, place.trackKey, place.level);
  if (top === null) return null;
  if (place.level < 0) {
    const half = MARK_PX + 3;
    return { x: toX(place.startNs) - half, y: top - view.y0, width: 2 * half };
  }
  const left = Math.max(-4, toX(place.startNs));
  const right = Math.min(widthPx + 4, toX(place.endNs));
  return { x: left, y: top - view.y0, width: Math.max(2, right - left) };
}

function outline(
  canvas: Canvas,
  place: Place,
  kind: "selected" | "hovered" | "related",
): void {
  const box = boxOf(canvas, place);
  if (box === null || box.x > canvas.widthPx || box.x + box.width < 0) return;
  const { context, trace } = canvas;
  const { text, link, bg } = tokens(trace.view.theme);
  const tall = LANE_PX - 1;
  if (kind === "selected") {
    context.strokeStyle = bg;
    context.lineWidth = 4;
    context.strokeRect(box.x, box.y, box.width, tall);
  }
  context.strokeStyle = kind === "hovered" ? text : link;
  context.lineWidth = kind === "selected" ? 2 : 1;
  context.strokeRect(box.x, box.y, box.width, tall);
}

/** A slice that is folded away or out of sight has its arrow end at its height. */
function endOf(
  canvas: Canvas,
  place: Place,
  atEnd: boolean,
): readonly [number, number] | null {
  const box = boxOf(canvas, place);
  if (box === null) return null;
  const x = canvas.toX(atEnd ? place.endNs : place.startNs);
  return [x, box.y + LANE_PX / 2];
}

function paintArrow(canvas: Canvas, { from, to }: Arrow): void {
  const overlaps = to.startNs < from.endNs;
  const a = endOf(canvas, from, !overlaps);
  const b = endOf(canvas, to, false);
  if (a === null || b === null) return;
  const { context, trace } = canvas;
  const { link, bg } = tokens(trace.view.theme);
  const bend = Math.max(24, Math.min(120, Math.abs(b[0] - a[0]) / 2));
  const curve = (): void => {
    context.beginPath();
    context.moveTo(a[0], a[1]);
    context.bezierCurveTo(a[0] + bend, a[1], b[0] - bend, b[1], b[0] - 5, b[1]);
    context.stroke();
  };
  context.strokeStyle = bg;
  context.lineWidth = 4;
  context.globalAlpha = 0.8;
  curve();
  context.globalAlpha = 1;
  context.strokeStyle = link;
  context.lineWidth = 1.75;
  curve();
  context.fillStyle = link;
  context.beginPath();
  context.moveTo(b[0], b[1]);
  context.lineTo(b[0] - 8, b[1] - 4);
  context.lineTo(b[0] - 8, b[1] + 4);
  context.fill();
}
