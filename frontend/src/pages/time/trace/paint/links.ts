/** Outlines of chosen slices, and the arrows between them. */

import { tokens } from "../../../../base/tokens";
import { MARK_PX } from "../tiles/instants";
import { LANE_PX, laneTop } from "../plot/layout";
import type { Canvas } from "./canvas";
import type { Arrow, Place } from "../plot/place";

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
