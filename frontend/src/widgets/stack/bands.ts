import { tokens, type Theme } from "../../base/tokens";
import type { SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import type { Pen } from "../export/pen";

/** `edges`: one more than there are columns. */
export interface Bands {
  readonly edges: ArrayLike<number>;
  /** From the bottom up; values of 0 or less take no room. */
  readonly layers: readonly {
    readonly values: ArrayLike<number>;
    readonly colour: string;
  }[];
}

export interface BandLook {
  /** Layers this thick have an upper edge in the background's colour. */
  readonly edgedPx: number;
  /** Narrower columns have no such edges: they would be specks. */
  readonly linedPx: number;
  /** Columns this wide have a gap. */
  readonly apartPx: number;
}

/** Whole px, so that columns meet; at least one, so that nothing thin vanishes. */
function span(a: number, b: number, mostPx: number): readonly [number, number] {
  const start = Math.min(Math.max(Math.round(Math.min(a, b)), 0), mostPx - 1);
  const end = Math.min(Math.round(Math.max(a, b)), mostPx);
  return [start, Math.max(end - start, 1)];
}

/** Px of the plot. */
export function paintBands(
  pen: Pen,
  { edges, layers }: Bands,
  look: BandLook,
  view: Viewport,
  { widthPx, heightPx }: SizePx,
  theme: Theme,
): void {
  const base = new Float64Array(Math.max(0, edges.length - 1));
  const lines: [number, number, number][] = [];
  for (const { values, colour } of layers) {
    pen.beginPath();
    let [left, top, wide, tall] = [0, 0, 0, 0];
    const draw = (): void => {
      if (wide > 0) pen.rect(left, top, wide, tall);
    };
    for (let column = 0; column < base.length; column += 1) {
      const value = values[column] ?? NaN;
      if (!(value > 0)) continue;
      const low = base[column] ?? 0;
      base[column] = low + value;
      const [begin, end] = [edges[column] ?? NaN, edges[column + 1] ?? NaN];
      if (!(end > view.x0 && begin < view.x1) || low > view.y0) continue;
      const [x0, x1] = [xToPx(view, widthPx, begin), xToPx(view, widthPx, end)];
      const [at, across] = span(x0, x1, widthPx);
      const apart = x1 - x0 >= look.apartPx ? 1 : 0;
      const upper = yToPx(view, heightPx, low + value);
      const lower = yToPx(view, heightPx, low);
      const [y, high] = span(upper, lower, heightPx);
      const room = Math.max(across - apart, 1);
      // Neighbours of one height become one rectangle.
      if (wide > 0 && at === left + wide && y === top && high === tall) wide += room;
      else {
        draw();
        [left, top, wide, tall] = [at, y, room, high];
      }
      const isThick = lower - upper >= look.edgedPx;
      if (isThick && x1 - x0 >= look.linedPx) lines.push([at, y, room]);
    }
    draw();
    pen.fillStyle = colour;
    pen.fill();
  }
  pen.beginPath();
  for (const [x, y, wide] of lines) pen.rect(x, y, wide, 1);
  pen.fillStyle = tokens(theme).bg;
  pen.fill();
}
