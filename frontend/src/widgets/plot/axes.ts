import { tokens, type Theme } from "../../base/tokens";
import type { Tick, XAxis } from "../../model/lines/axis";
import { xToPx, yToPx, type RectPx, type Viewport } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import type { PlotSight } from "./reader";

/** Equal in all plots, so that they line up below each other. */
export const SIDES = { left: 72, right: 14 } as const;
/** Tick labels below a plot. */
export const AXIS_PX = 26;

/** Compared by identity: a new object is painted. */
export interface Picture {
  readonly theme: Theme;
  readonly axis: XAxis;
  /** At most `most` ticks. */
  readonly yTicks: (view: Viewport, most: number, heightPx: number) => readonly Tick[];
  /** Values to px of the plot, where the scale is not linear. */
  readonly toY?: (value: number, seen: PlotSight) => number;
  readonly grid: "both" | "none" | "y";
  /** Clipped to the plot, with its corner as origin. */
  readonly paint: (pen: Pen, seen: PlotSight) => void;
  /** Over the plot, in px of the canvas. */
  readonly over?: (pen: Pen, seen: PlotSight) => void;
}

const [X_TICK_PX, Y_TICK_PX] = [84, 28];

export function paintPicture(pen: Pen, seen: PlotSight, picture: Picture): void {
  const { view, size, left, top } = seen;
  const { widthPx, heightPx } = size;
  const most = (px: number, tickPx: number) => Math.max(2, Math.floor(px / tickPx));
  const x = picture.axis.ticks(view.x0, view.x1, most(widthPx, X_TICK_PX));
  const y = picture.yTicks(view, most(heightPx, Y_TICK_PX), heightPx);
  paintAxes(pen, { ...picture, ...seen, x, y });
  clipTo(pen, left, top, widthPx, heightPx);
  pen.translate(left, top);
  picture.paint(pen, seen);
  pen.restore();
  picture.over?.(pen, seen);
}

export interface Axes extends PlotSight, Pick<Picture, "grid" | "theme" | "toY"> {
  readonly x: readonly Tick[];
  readonly y: readonly Tick[];
}

export function paintAxes(pen: Pen, axes: Axes): void {
  const { left, top, size, theme, grid, view } = axes;
  const { toY = (y: number) => yToPx(view, size.heightPx, y) } = axes;
  const { secondary, border, grid: faint } = tokens(theme);
  const [right, bottom] = [left + size.widthPx, top + size.heightPx];
  pen.font = FONT;
  pen.lineWidth = 1;
  pen.fillStyle = secondary;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.strokeStyle = faint;
  for (const { value, text } of axes.y) {
    const y = Math.round(top + toY(value, axes)) + 0.5;
    if (grid !== "none") strokeLine(pen, left, y, right, y);
    pen.fillText(text, left - 8, y);
  }
  pen.textBaseline = "alphabetic";
  for (const { value, text } of axes.x) {
    const x = Math.round(left + xToPx(view, size.widthPx, value)) + 0.5;
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

/** Until `pen.restore()`. */
export function clipTo(pen: Pen, x: number, y: number, width: number, height: number) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
}

/** Visible on every colour of a palette. */
const ON_CELLS = [
  ["rgb(0 0 0 / 55%)", 3],
  ["#ffffff", 1],
] as const;

/** `x` is a value; `row` and `box` are in px of the plot. */
export function paintPointer(
  pen: Pen,
  theme: Theme,
  { view, size, left, top }: PlotSight,
  pointer: {
    readonly x: number;
    readonly row: number;
    readonly box: RectPx | null;
    readonly stripPx: number;
    readonly onCells: boolean;
  },
): void {
  const { text, secondary, link } = tokens(theme);
  const line = (colour: string, x0: number, y0: number, x1: number, y1: number) => {
    for (const [stroke, width] of pointer.onCells
      ? ON_CELLS
      : ([[colour, 1]] as const)) {
      pen.strokeStyle = stroke;
      pen.lineWidth = width;
      strokeLine(pen, x0, y0, x1, y1);
    }
  };
  if (pointer.x >= view.x0 && pointer.x <= view.x1) {
    const x = Math.round(left + xToPx(view, size.widthPx, pointer.x)) + 0.5;
    const strip = pointer.stripPx > 0 ? AXIS_PX + pointer.stripPx - 4 : 0;
    line(text, x, top, x, top + size.heightPx + strip);
    const y = top + pointer.row;
    if (pointer.row >= 0 && pointer.row <= size.heightPx)
      line(secondary, left, y, left + size.widthPx, y);
  }
  if (pointer.box === null) return;
  const { x, y, width, height } = pointer.box;
  pen.fillStyle = pen.strokeStyle = pointer.onCells ? "#ffffff" : link;
  pen.lineWidth = 1;
  pen.globalAlpha = 0.2;
  pen.fillRect(left + x, top + y, width, height);
  pen.globalAlpha = 1;
  pen.strokeRect(left + x, top + y, width, height);
}
