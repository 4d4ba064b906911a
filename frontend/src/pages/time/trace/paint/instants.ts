/** Instants: a mark with its name beside it; errors of memory across all tracks. */

import type { TraceInstantKind } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { MARK_PX, marksOf, type Mark } from "../tiles/instants";
import { LANE_PX, rowsBetween } from "../plot/layout";
import type { Canvas } from "./canvas";
import { fitting, widthOf } from "./text";

const LEAST_ROOM_PX = 26;

export function markColour(theme: Theme, kind: TraceInstantKind): string {
  const { bad, ok, text } = tokens(theme);
  return kind === "oom" ? bad : kind === "checkpoint" ? ok : text;
}

export function paintInstants(canvas: Canvas): void {
  const { layout, view, tiles, find } = canvas;
  const wanted = find.toLocaleLowerCase();
  for (const row of rowsBetween(layout, view.y0, view.y1)) {
    if (!row.hasMarks) continue;
    const marks = marksOf(tiles, row.trackKey);
    const middle = row.y - view.y0 + LANE_PX / 2;
    let free = -Infinity;
    marks.forEach((mark, i) => {
      const x = canvas.toX(mark.timeNs);
      if (x < -200 || x > canvas.widthPx + MARK_PX) return;
      const isLit = wanted === "" || mark.name.toLocaleLowerCase().includes(wanted);
      canvas.context.globalAlpha = isLit ? 1 : 0.3;
      canvas.context.fillStyle = markColour(canvas.theme, mark.kind);
      if (mark.kind === "oom") canvas.context.fillRect(x - 0.5, 0, 1, canvas.heightPx);
      shape(canvas, mark.kind, x, middle);
      const next = marks[i + 1];
      const end = next === undefined ? canvas.widthPx : canvas.toX(next.timeNs);
      if (x >= free) free = name(canvas, mark, x, middle, end - MARK_PX);
      canvas.context.globalAlpha = 1;
    });
  }
}

/** Gives back where the next name may begin. */
function name(
  { context, theme }: Canvas,
  mark: Mark,
  x: number,
  middle: number,
  end: number,
): number {
  const left = x + MARK_PX + 3;
  if (end - left < LEAST_ROOM_PX) return left;
  const text = mark.count > 1 ? `${mark.name} and ${mark.count - 1} more` : mark.name;
  const words = fitting(text, widthOf(context, text), end - left - 4);
  if (words !== "") {
    context.fillStyle = tokens(theme).text;
    context.fillText(words, left, middle);
  }
  return left + (words === "" ? 0 : widthOf(context, words));
}

/** Told apart by their form alone: a cross in a disc, a flag, a diamond. */
function shape(
  { context, theme }: Canvas,
  kind: TraceInstantKind,
  x: number,
  y: number,
): void {
  const r = MARK_PX;
  context.beginPath();
  if (kind === "oom") {
    context.arc(x, y, r + 0.5, 0, 2 * Math.PI);
    context.fill();
    context.save();
    context.strokeStyle = tokens(theme).bg;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x - 2, y - 2);
    context.lineTo(x + 2, y + 2);
    context.moveTo(x + 2, y - 2);
    context.lineTo(x - 2, y + 2);
    context.stroke();
    context.restore();
    return;
  }
  if (kind === "checkpoint") {
    context.rect(x - 0.75, y - r - 1, 1.5, 2 * r + 2);
    context.moveTo(x, y - r - 1);
    context.lineTo(x + r + 2, y - r / 2 - 0.5);
    context.lineTo(x, y + 0.5);
  } else {
    context.moveTo(x, y - r);
    context.lineTo(x + r - 0.5, y);
    context.lineTo(x, y + r);
    context.lineTo(x - r + 0.5, y);
  }
  context.fill();
}
