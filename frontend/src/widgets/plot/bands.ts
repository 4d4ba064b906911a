/** Layers stacked over columns of any width. */

import { tokens, type Theme } from "../../base/tokens";
import type { SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import type { Pen } from "../export/pen";
import { clipTo, paintAxes, type Axes } from "./axes";

/** Columns side by side; `edges` has one value more than there are columns. */
export interface Bands {
  readonly edges: ArrayLike<number>;
  /** From the lowest up; what is not above 0 takes no room. */
  readonly layers: readonly ArrayLike<number>[];
}

export interface BandLook {
  readonly colours: readonly string[];
  /** A layer this thick has a line at its upper edge, in the background's colour. */
  readonly edgedPx: number;
  /** Columns narrower than this have no such lines: they would only be specks. */
  readonly linedPx: number;
  /** Columns at least this wide stand apart. */
  readonly apartPx: number;
}

/** Whole px, so that columns meet; at least one, so that nothing thin vanishes. */
function span(a: number, b: number, mostPx: number): readonly [number, number] {
  const start = Math.min(Math.max(Math.round(Math.min(a, b)), 0), mostPx - 1);
  const end = Math.min(Math.round(Math.max(a, b)), mostPx);
  return [start, Math.max(end - start, 1)];
}

/** Bands over their axes; in px of the canvas. */
export function paintStacked(
  pen: Pen,
  stack: Bands & Pick<Axes, "left" | "top" | "size" | "theme" | "x" | "y">,
  look: BandLook,
  view: Viewport,
  /** What is painted over them, in px of the plot. */
  over?: () => void,
): void {
  const { left, top, size, theme } = stack;
  paintAxes(pen, {
    ...stack,
    grid: "y",
    toX: (x) => xToPx(view, size.widthPx, x),
    toY: (y) => yToPx(view, size.heightPx, y),
  });
  clipTo(pen, left, top, size.widthPx, size.heightPx);
  pen.translate(left, top);
  paintBands(pen, stack, look, view, size, theme);
  over?.();
  pen.restore();
}

/** The highest column; -1 where there is none. */
export function highestColumn(values: ArrayLike<number>): number {
  let best = -1;
  for (let c = 0; c < values.length; c += 1) {
    if ((values[c] ?? NaN) > (values[best] ?? -Infinity)) best = c;
  }
  return best;
}

/** In px of the plot: the pen is moved to its corner. */
export function paintBands(
  pen: Pen,
  { edges, layers }: Bands,
  look: BandLook,
  view: Viewport,
  size: SizePx,
  theme: Theme,
): void {
  const { widthPx, heightPx } = size;
  const base = new Float64Array(Math.max(0, edges.length - 1));
  const lines: [number, number, number][] = [];
  layers.forEach((values, layer) => {
    pen.beginPath();
    for (let column = 0; column < base.length; column += 1) {
      const value = values[column] ?? NaN;
      if (!(value > 0)) continue;
      const low = base[column] ?? 0;
      base[column] = low + value;
      const [begin, end] = [edges[column] ?? NaN, edges[column + 1] ?? NaN];
      if (!(end > view.x0 && begin < view.x1) || low > view.y0) continue;
      const [x0, x1] = [xToPx(view, widthPx, begin), xToPx(view, widthPx, end)];
      const [left, wide] = span(x0, x1, widthPx);
      const apart = x1 - x0 >= look.apartPx ? 1 : 0;
      const [y1, y0] = [low + value, low].map((y) => yToPx(view, heightPx, y));
      const [top, tall] = span(y1 ?? NaN, y0 ?? NaN, heightPx);
      pen.rect(left, top, Math.max(wide - apart, 1), tall);
      const thick = (y0 ?? NaN) - (y1 ?? NaN) >= look.edgedPx;
      if (thick && x1 - x0 >= look.linedPx) lines.push([left, top, wide - apart]);
    }
    pen.fillStyle = look.colours[layer] ?? "#888888";
    pen.fill();
  });
  pen.beginPath();
  for (const [x, y, wide] of lines) pen.rect(x, y, wide, 1);
  pen.fillStyle = tokens(theme).bg;
  pen.fill();
}
