/** Axes of plots: ticks with their texts, and the lines of the grid. */

import { tokens, type Theme } from "../../base/tokens";
import type { Tick } from "../../model/lines/axis";
import type { RectPx, SizePx } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";

/** Left and right of every plot, so that plots stand below each other. */
export const SIDES = { left: 72, right: 14 } as const;
/** Below a plot: the ticks' texts. */
export const AXIS_PX = 26;

export interface Axes {
  /** The plot's corner. */
  readonly left: number;
  readonly top: number;
  readonly size: SizePx;
  readonly theme: Theme;
  readonly x: readonly Tick[];
  readonly y: readonly Tick[];
  /** From values to px of the plot. */
  readonly toX: (value: number) => number;
  readonly toY: (value: number) => number;
  /** Which ticks have a line through the plot. */
  readonly grid: "both" | "none" | "y";
}

export function paintAxes(pen: Pen, axes: Axes): void {
  const { left, top, size, theme, toX, toY, grid } = axes;
  const { secondary, border, grid: faint } = tokens(theme);
  const [right, bottom] = [left + size.widthPx, top + size.heightPx];
  pen.font = FONT;
  pen.lineWidth = 1;
  pen.fillStyle = secondary;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.strokeStyle = faint;
  for (const { value, text } of axes.y) {
    const y = Math.round(top + toY(value)) + 0.5;
    if (grid !== "none") strokeLine(pen, left, y, right, y);
    pen.fillText(text, left - 8, y);
  }
  pen.textBaseline = "alphabetic";
  for (const { value, text } of axes.x) {
    const x = Math.round(left + toX(value)) + 0.5;
    pen.strokeStyle = faint;
    if (grid === "both") strokeLine(pen, x, top, x, bottom);
    pen.strokeStyle = border;
    strokeLine(pen, x, bottom, x, bottom + 4);
    // A text is not cut at the picture's edge.
    const beyond = x + pen.measureText(text).width / 2 > right + SIDES.right;
    pen.textAlign = beyond ? "right" : "center";
    pen.fillText(text, beyond ? right + SIDES.right - 2 : x, bottom + 17);
  }
}

/** What follows is painted inside a rectangle alone, until the pen is restored. */
export function clipTo(pen: Pen, x: number, y: number, width: number, height: number) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
}

/** The line under the pointer at x, and the box that is being drawn; px of the canvas. */
export function paintPointer(
  pen: Pen,
  theme: Theme,
  line: { readonly x: number; readonly top: number; readonly bottom: number } | null,
  box: RectPx | null,
): void {
  const { text, link } = tokens(theme);
  pen.lineWidth = 1;
  if (line !== null) {
    const x = Math.round(line.x) + 0.5;
    pen.strokeStyle = text;
    strokeLine(pen, x, line.top, x, line.bottom);
  }
  if (box === null) return;
  pen.fillStyle = link;
  pen.globalAlpha = 0.18;
  pen.fillRect(box.x, box.y, box.width, box.height);
  pen.globalAlpha = 1;
  pen.strokeStyle = link;
  pen.strokeRect(box.x, box.y, box.width, box.height);
}
