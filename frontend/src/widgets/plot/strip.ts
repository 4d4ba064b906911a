import { tokens, type Theme } from "../../base/tokens";
import { xToPx, type RectPx } from "../../render/viewport";
import { FONT, type Pen } from "../export/pen";
import { AXIS_PX, SIDES } from "./axes";
import type { PlotSight } from "./reader";
import { fitting } from "./canvas";

export const STRIP_ROW_PX = 16;
const LABEL_LEAST_PX = 22;

interface StripSpan {
  readonly x0: number;
  readonly x1: number;
  readonly row: number;
  readonly colour: string;
  readonly label: string;
  /** Where the label does not fit. */
  readonly short?: string;
  /** In exports, where a label may be cut. */
  readonly name: string;
  readonly isHatched?: boolean;
  readonly isOutlined?: boolean;
}

/** Px of the canvas. */
export function stripTop({ top, size }: PlotSight): number {
  return top + size.heightPx + AXIS_PX;
}

export function paintStrip(
  pen: Pen,
  seen: PlotSight,
  spans: readonly StripSpan[],
  theme: Theme,
): void {
  const { view, size, left } = seen;
  const { text, bg, link } = tokens(theme);
  const widthOf = (name: string): number => pen.measureText(name).width;
  const height = STRIP_ROW_PX - 2;
  Object.assign(pen, { font: FONT, textAlign: "left", textBaseline: "middle" });
  for (const span of spans) {
    if (span.x1 < view.x0 || span.x0 > view.x1) continue;
    const x = left + Math.max(-2, xToPx(view, size.widthPx, span.x0));
    const end = Math.min(size.widthPx + 2, xToPx(view, size.widthPx, span.x1));
    const width = Math.max(0.75, left + end - x - 1);
    const y = stripTop(seen) + span.row * STRIP_ROW_PX;
    pen.fillStyle = span.colour;
    pen.name?.(span.name);
    pen.fillRect(x, y, width, height);
    if (span.isHatched === true) paintHatch(pen, [{ x, y, width, height }], bg, 7, 2);
    if (width >= LABEL_LEAST_PX) {
      const { label, short = label } = span;
      const name = widthOf(label) > width - 8 ? short : label;
      pen.fillStyle = text;
      pen.fillText(fitting(name, width - 8, widthOf), x + 4, y + height / 2 + 0.5);
    }
    if (span.isOutlined !== true) continue;
    pen.strokeStyle = link;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, width - 2, height - 2);
  }
}

export function paintHatch(
  pen: Pen,
  over: readonly RectPx[],
  colour: string,
  apartPx: number,
  lineWidth = 1,
): void {
  if (over.length === 0) return;
  const left = Math.min(...over.map(({ x }) => x));
  const right = Math.max(...over.map(({ x, width }) => x + width));
  const top = Math.min(...over.map(({ y }) => y));
  const bottom = Math.max(...over.map(({ y, height }) => y + height));
  pen.save();
  pen.beginPath();
  for (const { x, y, width, height } of over) pen.rect(x, y, width, height);
  pen.clip();
  pen.beginPath();
  for (let x = left - (bottom - top); x < right; x += apartPx) {
    pen.moveTo(x, bottom);
    pen.lineTo(x + bottom - top, top);
  }
  pen.strokeStyle = colour;
  pen.lineWidth = lineWidth;
  pen.stroke();
  pen.restore();
}

/** x in px of the canvas. */
interface MarkName {
  readonly x: number;
  readonly text: string;
  readonly colour: string;
}

/** A name that would hide an earlier one is not drawn. */
export function paintNames(
  pen: Pen,
  { left, size }: PlotSight,
  names: readonly MarkName[],
  y: number,
  besidePx: number,
): void {
  const last = left + size.widthPx + SIDES.right;
  const taken: { readonly from: number; readonly to: number }[] = [];
  Object.assign(pen, { font: FONT, textAlign: "left", textBaseline: "middle" });
  for (const { x, text, colour } of names) {
    const width = pen.measureText(text).width;
    const from = [x + besidePx, x - besidePx - width].find(
      (start) =>
        start >= left &&
        start + width <= last &&
        taken.every((other) => start + width < other.from || start > other.to),
    );
    taken.push({ from: x - besidePx + 1, to: x + besidePx - 1 });
    if (from === undefined || width === 0) continue;
    pen.fillStyle = colour;
    pen.fillText(text, from, y);
    taken.push({ from: from - 4, to: from + width + 4 });
  }
}
