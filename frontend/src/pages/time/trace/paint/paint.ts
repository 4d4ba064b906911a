/** What lies over the raster: headings, steps, counters, labels, selections, the cursor. */

import { formatNs } from "../words";
import { tokens, type Theme } from "../../../../base/tokens";
import { xToPx, type Viewport } from "../../../../render/viewport";
import {
  rowsBetween,
  LANE_PX,
  type Layout,
  type Arrow,
  type NsRange,
  type Place,
  laneTop,
} from "../plot/layout";
import { paintCounters, paintInstants } from "./lines";
import { isLight, type Picture } from "./quads";
import type { TraceSteps } from "../../../../api/types.gen";
import { type TraceTile, MARK_PX } from "../tiles/tile";

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
  paintMark(canvas);
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
  const text = formatNs(range.high - range.low);
  const wide = widthOf(context, text) + 2 * PAD_PX;
  const from = Math.min(Math.max((left + right - wide) / 2, 0), widthPx - wide);
  context.fillRect(from, 2, wide, LANE_PX);
  context.fillStyle = tokens(theme).bg;
  context.fillText(text, from + PAD_PX, 2 + LANE_PX / 2);
}

/** The first of two marks, until there is a second. */
function paintMark({ context, markNs, toX, heightPx, theme }: Canvas): void {
  if (markNs === null) return;
  context.fillStyle = tokens(theme).link;
  context.fillRect(Math.round(toX(markNs)), 0, 2, heightPx);
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

export interface OverlayPaint {
  readonly view: Viewport;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly theme: Theme;
  readonly layout: Layout;
  readonly picture: Picture;
  readonly tiles: readonly TraceTile[];
  readonly steps: TraceSteps;
  readonly find: string;
  readonly selected: Place | null;
  readonly hovered: Place | null;
  readonly related: readonly Place[];
  readonly arrows: readonly Arrow[];
  readonly range: NsRange | null;
  readonly markNs: number | null;
  readonly cursorNs: number | null;
}

/** With where to paint it. */
export interface Canvas extends OverlayPaint {
  readonly context: CanvasRenderingContext2D;
  readonly toX: (ns: number) => number;
}

/** First step that ends after a time. */
export function firstStep({ endNs }: TraceSteps, ns: number): number {
  let [low, high] = [0, endNs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((endNs[middle] ?? 0) <= ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** An empty context in CSS px; null where there is no canvas. */
export function sized(
  canvas: HTMLCanvasElement | null,
  widthPx: number,
  heightPx: number,
  dpr: number,
): CanvasRenderingContext2D | null {
  const context = canvas?.getContext("2d") ?? null;
  if (canvas === null || context === null) return null;
  const [wide, tall] = [Math.round(widthPx * dpr), Math.round(heightPx * dpr)];
  context.setTransform(1, 0, 0, 1, 0, 0);
  if (canvas.width !== wide || canvas.height !== tall) {
    canvas.width = wide;
    canvas.height = tall;
  } else context.clearRect(0, 0, wide, tall);
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  return context;
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

/** As much of a text as fits; "" where that says nothing. */
export function fitting(text: string, wide: number, room: number): string {
  if (wide <= room) return text;
  const letters = Math.floor((room - 8) / (wide / Math.max(1, text.length)));
  return letters < 3 ? "" : `${text.slice(0, letters).trimEnd()}…`;
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

export function outline(
  canvas: Canvas,
  place: Place,
  kind: "selected" | "hovered" | "related",
): void {
  const box = boxOf(canvas, place);
  if (box === null || box.x > canvas.widthPx || box.x + box.width < 0) return;
  const { context, theme } = canvas;
  const { text, link, bg } = tokens(theme);
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

export function paintArrow(canvas: Canvas, { from, to }: Arrow): void {
  const overlaps = to.startNs < from.endNs;
  const a = endOf(canvas, from, !overlaps);
  const b = endOf(canvas, to, false);
  if (a === null || b === null) return;
  const { context, theme } = canvas;
  const { link, bg } = tokens(theme);
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
