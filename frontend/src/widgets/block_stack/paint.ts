/** Axes, lines, marks and labels of the picture of blocks, on canvases in CSS px. */

import type { ByteUnit } from "../../base/bytes";
import { formatBytes } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import type { SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import type { BlockAxis } from "./axis";
import { inkOn } from "./colours";
import { fitting, type DirectLabel } from "./labels";
import type { DrawnMarks, PointMark, SpanMark } from "./marks";
import type { BlockTile } from "./tile";

/** Left and right as in the line charts, so that plots stand below each other. */
export const GUTTER = { left: 72, right: 14, top: 20 } as const;
export const AXIS_PX = 24;
export const SPAN_ROW_PX = 16;

/** Blocks are named in it, bands in the other. */
export const FONT = "11px Roboto, Helvetica, Arial, sans-serif";
export const BOLD = "500 12px Roboto, Helvetica, Arial, sans-serif";
const SPAN_LABEL_LEAST_PX = 24;
const RESERVED = "reserved";

export interface BlockScene {
  readonly view: Viewport;
  readonly size: SizePx;
  readonly axis: BlockAxis;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly marks: DrawnMarks;
  /** null: not recorded. */
  readonly capacityBytes: number | null;
  readonly showReserved: boolean;
  readonly tile: BlockTile | null;
  readonly labels: readonly DirectLabel[];
  /** What a label stands on; null: something faded, or of several colours. */
  readonly labelColour: (label: DirectLabel) => string | null;
  /** Moments as x; null: none. */
  readonly pinnedX: number | null;
  readonly markedX: number | null;
}

export function spansTop(size: SizePx): number {
  return GUTTER.top + size.heightPx + AXIS_PX;
}

export function spansHeight(marks: DrawnMarks): number {
  return marks.numRows * SPAN_ROW_PX;
}

/** CSS px of everything: gutters, plot, axis and spans. */
export function totalHeight(size: SizePx, marks: DrawnMarks): number {
  return spansTop(size) + spansHeight(marks) + (marks.numRows > 0 ? 4 : 0);
}

function stroke(
  context: CanvasRenderingContext2D,
  x0: number,
  y0: number,
  x1: number,
  y1: number,
): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

export function widthIn(
  context: CanvasRenderingContext2D,
  font: string,
): (text: string) => number {
  const known = new Map<string, number>();
  return (text) => {
    let width = known.get(text);
    if (width === undefined) {
      context.font = font;
      width = context.measureText(text).width;
      known.set(text, width);
    }
    return width;
  };
}

function plotX({ view, size }: BlockScene, x: number): number {
  return GUTTER.left + xToPx(view, size.widthPx, x);
}

function plotY({ view, size }: BlockScene, y: number): number {
  return GUTTER.top + yToPx(view, size.heightPx, y);
}

/** Below the blocks: grid and both axes. */
export function paintAxes(context: CanvasRenderingContext2D, scene: BlockScene): void {
  const { view, size, theme, axis, byteUnit } = scene;
  const { secondary, border, grid } = tokens(theme);
  const bottom = GUTTER.top + size.heightPx;
  const right = GUTTER.left + size.widthPx;
  context.font = FONT;
  context.lineWidth = 1;
  context.fillStyle = secondary;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.strokeStyle = grid;
  const most = Math.max(2, Math.floor(size.heightPx / 44));
  for (const tick of valueTicks(view.y1, view.y0, most, "bytes", byteUnit)) {
    const y = Math.round(plotY(scene, tick.value)) + 0.5;
    stroke(context, GUTTER.left, y, right, y);
    context.fillText(tick.text, GUTTER.left - 8, y);
  }
  context.strokeStyle = border;
  stroke(context, GUTTER.left, bottom + 0.5, right, bottom + 0.5);
  context.textBaseline = "alphabetic";
  for (const tick of axis.ticks(view.x0, view.x1, size.widthPx)) {
    const x = Math.round(plotX(scene, tick.value)) + 0.5;
    stroke(context, x, bottom, x, bottom + 4);
    const half = context.measureText(tick.text).width / 2;
    context.textAlign = x + half > right + GUTTER.right ? "right" : "center";
    const at = context.textAlign === "right" ? right + GUTTER.right - 2 : x;
    context.fillText(tick.text, at, bottom + 16);
  }
}

/** Above the blocks: what does not change while the pointer moves. */
export function paintLines(context: CanvasRenderingContext2D, scene: BlockScene): void {
  const { size } = scene;
  context.save();
  context.beginPath();
  context.rect(GUTTER.left, GUTTER.top, size.widthPx, size.heightPx);
  context.clip();
  paintReserved(context, scene);
  paintCapacity(context, scene);
  paintLabels(context, scene);
  context.restore();
  paintMoments(context, scene);
  paintPoints(context, scene);
  paintSpans(context, scene);
}

function paintReserved(context: CanvasRenderingContext2D, scene: BlockScene): void {
  const { tile, view, theme, showReserved } = scene;
  if (tile === null || !showReserved || tile.numColumns === 0) return;
  const { edge, reserved } = tile.answer.columns;
  context.strokeStyle = tokens(theme).text;
  context.globalAlpha = 0.75;
  context.lineWidth = 1.5;
  context.setLineDash([]);
  context.beginPath();
  let last = NaN;
  for (let column = 0; column < tile.numColumns; column += 1) {
    const end = edge[column + 1] ?? 0;
    if (end < view.x0) continue;
    const begin = edge[column] ?? 0;
    if (begin > view.x1) break;
    const y = plotY(scene, reserved[column] ?? NaN);
    if (Number.isNaN(last)) context.moveTo(plotX(scene, begin), y);
    else if (y !== last) context.lineTo(plotX(scene, begin), y);
    context.lineTo(plotX(scene, end), y);
    last = y;
  }
  context.stroke();
  context.globalAlpha = 1;
  paintReservedLabel(context, scene, tile);
}

/** Above the line, as far right as neither the line nor the device's size runs through. */
function paintReservedLabel(
  context: CanvasRenderingContext2D,
  scene: BlockScene,
  tile: BlockTile,
): void {
  const { view, size, capacityBytes, theme } = scene;
  const { reserved } = tile.answer.columns;
  context.font = FONT;
  context.fillStyle = tokens(theme).text;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  const width = context.measureText(RESERVED).width;
  const limit = capacityBytes === null ? -Infinity : plotY(scene, capacityBytes);
  const columnAt = (px: number): number => {
    const x = view.x0 + (px / size.widthPx) * (view.x1 - view.x0);
    return tile.columnAt(Math.min(Math.max(x, tile.low), tile.high));
  };
  for (let left = size.widthPx - width - 6; left > 6; left -= 12) {
    const [from, to] = [columnAt(left - 2), columnAt(left + width + 2)];
    let highest = 0;
    for (let column = from; column <= to; column += 1) {
      highest = Math.max(highest, reserved[column] ?? 0);
    }
    const y = plotY(scene, highest);
    const free = y > GUTTER.top + 16 && y < GUTTER.top + size.heightPx;
    if (!free || (limit > y - 18 && limit < y + 2)) continue;
    halo(context, scene, RESERVED, GUTTER.left + left, y - 4);
    return;
  }
}

function paintCapacity(context: CanvasRenderingContext2D, scene: BlockScene): void {
  const { capacityBytes, theme, byteUnit, view, size } = scene;
  if (capacityBytes === null || capacityBytes > view.y0) return;
  const y = Math.round(plotY(scene, capacityBytes)) + 0.5;
  context.strokeStyle = tokens(theme).bad;
  context.lineWidth = 1.5;
  context.setLineDash([6, 4]);
  stroke(context, GUTTER.left, y, GUTTER.left + size.widthPx, y);
  context.setLineDash([]);
  const text = `device ${formatBytes(capacityBytes, byteUnit)}`;
  context.font = FONT;
  context.fillStyle = tokens(theme).bad;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  halo(context, scene, text, GUTTER.left + 6, y + (y < GUTTER.top + 14 ? 12 : -4));
}

/** Text that stays readable on whatever lies below it. */
function halo(
  context: CanvasRenderingContext2D,
  { theme }: BlockScene,
  text: string,
  x: number,
  y: number,
): void {
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = tokens(theme).bg;
  context.globalAlpha = 0.85;
  context.strokeText(text, x, y);
  context.globalAlpha = 1;
  context.fillText(text, x, y);
}

function paintLabels(context: CanvasRenderingContext2D, scene: BlockScene): void {
  const { labels, view, labelColour } = scene;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const label of labels) {
    if (label.x < view.x0 || label.x > view.x1) continue;
    if (label.y > view.y0 || label.y < view.y1) continue;
    context.font = label.kind === "band" ? BOLD : FONT;
    const colour = labelColour(label);
    const [x, y] = [plotX(scene, label.x), plotY(scene, label.y) + 0.5];
    if (colour === null) {
      context.fillStyle = tokens(scene.theme).text;
      halo(context, scene, label.text, x, y);
    } else {
      context.fillStyle = inkOn(colour);
      context.fillText(label.text, x, y);
    }
  }
}

/** The pinned moment and the marked one, through picture and spans. */
function paintMoments(context: CanvasRenderingContext2D, scene: BlockScene): void {
  const { pinnedX, markedX, view, size, theme, marks } = scene;
  const { link, bg, warn } = tokens(theme);
  const bottom = spansTop(size) + spansHeight(marks);
  const flags = [
    [markedX, warn, "M"],
    [pinnedX, link, "●"],
  ] as const;
  for (const [at, colour, sign] of flags) {
    if (at === null || at < view.x0 || at > view.x1) continue;
    const x = Math.round(plotX(scene, at)) + 0.5;
    context.strokeStyle = bg;
    context.lineWidth = 4;
    context.globalAlpha = 0.6;
    stroke(context, x, GUTTER.top, x, GUTTER.top + size.heightPx);
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    stroke(context, x, GUTTER.top - 4, x, bottom);
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x, GUTTER.top - 9, 7, 0, 2 * Math.PI);
    context.fill();
    context.fillStyle = bg;
    context.font = "500 9px Roboto, Helvetica, Arial, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(sign, x, GUTTER.top - 8.5);
  }
}

export function pointLabel(
  { kind, bytes, label }: PointMark,
  byteUnit: ByteUnit,
): string {
  if (kind === "snapshot") return label === "" ? "snapshot" : `snapshot ${label}`;
  return Number.isFinite(bytes)
    ? `out of memory, asked for ${formatBytes(bytes, byteUnit)}`
    : "out of memory";
}

/** Lines of errors and snapshots, each with its name where it hides no other. */
function paintPoints(context: CanvasRenderingContext2D, scene: BlockScene): void {
  const { marks, view, size, theme, byteUnit } = scene;
  const { bad, secondary } = tokens(theme);
  const last = GUTTER.left + size.widthPx;
  const taken: { readonly from: number; readonly to: number }[] = [];
  context.font = FONT;
  context.textBaseline = "middle";
  const oomsFirst = [...marks.points].sort(
    (a, b) => Number(b.kind === "oom") - Number(a.kind === "oom") || a.x - b.x,
  );
  for (const mark of oomsFirst) {
    if (mark.x < view.x0 || mark.x > view.x1) continue;
    const x = Math.round(plotX(scene, mark.x)) + 0.5;
    const oom = mark.kind === "oom";
    context.strokeStyle = oom ? bad : secondary;
    context.fillStyle = oom ? bad : secondary;
    context.lineWidth = oom ? 1.5 : 1;
    context.setLineDash(oom ? [] : [4, 3]);
    stroke(context, x, GUTTER.top - 4, x, GUTTER.top + size.heightPx);
    context.setLineDash([]);
    if (oom) cross(context, x, GUTTER.top - 10);
    else triangle(context, x, GUTTER.top - 10);
    const text = pointLabel(mark, byteUnit);
    const width = context.measureText(text).width;
    const from = [x + 9, x - 9 - width].find(
      (start) =>
        start >= GUTTER.left &&
        start + width <= last + GUTTER.right &&
        taken.every((other) => start + width < other.from || start > other.to),
    );
    taken.push({ from: x - 8, to: x + 8 });
    if (from === undefined) continue;
    context.textAlign = "left";
    context.fillText(text, from, GUTTER.top - 9.5);
    taken.push({ from: from - 4, to: from + width + 4 });
  }
}

function cross(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.lineWidth = 2;
  stroke(context, x - 4, y - 4, x + 4, y + 4);
  stroke(context, x - 4, y + 4, x + 4, y - 4);
}

function triangle(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.beginPath();
  context.moveTo(x - 4.5, y - 4);
  context.lineTo(x + 4.5, y - 4);
  context.lineTo(x, y + 4);
  context.closePath();
  context.fill();
}

export function spanFill(span: SpanMark, index: number, theme: Theme): string {
  const dark = theme === "dark";
  const even = index % 2 === 0;
  if (span.kind === "step") {
    if (dark) return even ? "#4a5462" : "#404854";
    return even ? "#dfe5ec" : "#eef1f5";
  }
  if (span.kind === "tag") return dark ? "#3f5872" : "#d6e6f7";
  return dark ? "#5b5470" : "#e6e0f3";
}

function paintSpans(context: CanvasRenderingContext2D, scene: BlockScene): void {
  const { marks, view, size, theme } = scene;
  if (marks.numRows === 0) return;
  context.save();
  context.beginPath();
  context.rect(GUTTER.left, spansTop(size), size.widthPx, spansHeight(marks));
  context.clip();
  context.font = FONT;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const widthOf = (text: string): number => context.measureText(text).width;
  marks.spans.forEach((span, i) => {
    if (span.x1 < view.x0 || span.x0 > view.x1) return;
    const left = Math.max(GUTTER.left - 2, plotX(scene, span.x0));
    const right = Math.min(GUTTER.left + size.widthPx + 2, plotX(scene, span.x1));
    const y = spansTop(size) + span.row * SPAN_ROW_PX;
    const width = Math.max(0.75, right - left - 1);
    context.fillStyle = spanFill(span, i, theme);
    context.fillRect(left, y, width, SPAN_ROW_PX - 2);
    if (width < SPAN_LABEL_LEAST_PX) return;
    const text = fitting(span.label, width - 8, widthOf);
    context.fillStyle = tokens(theme).text;
    context.fillText(text, left + 4, y + SPAN_ROW_PX / 2 - 0.5);
  });
  context.restore();
}
