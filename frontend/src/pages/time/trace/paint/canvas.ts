/** What is painted over the raster, and where; canvases of the size they have on screen. */

import type { TraceSteps } from "../../../../api/types.gen";
import type { Theme } from "../../../../base/tokens";
import type { Viewport } from "../../../../render/viewport";
import type { Layout } from "../plot/layout";
import type { Arrow, NsRange, Place } from "../plot/place";
import type { Picture } from "./quads";
import type { TraceTile } from "../tiles/tile";

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
