/**
 * A canvas that always shows something: the newest drawing, stretched to the current
 * viewport until the drawing made for it arrives.
 */

import type { Frame } from "./protocol";
import { createRasterClient } from "./raster_client";
import type { RasterClient } from "./raster_client";
import { NO_ID, pickId } from "./raster";
import type { Layer, Pick, SceneColours } from "./scene";
import { resolvePick } from "./scene";
import type { SizePx, Viewport } from "./viewport";
import { frameRect, pxToX, pxToY, sameView } from "./viewport";

export interface SurfaceEvents {
  /** A drawing arrived and was painted. */
  readonly onPaint: (frame: Frame) => void;
  readonly onFailure: (message: string) => void;
}

/** The viewport and size with `px` more on the left and on the right. */
function withMargin(
  view: Viewport,
  size: SizePx,
  px: number,
): { readonly view: Viewport; readonly size: SizePx } {
  const slack = (px / size.widthPx) * (view.x1 - view.x0);
  return {
    view: { ...view, x0: view.x0 - slack, x1: view.x1 + slack },
    size: { ...size, widthPx: size.widthPx + 2 * px },
  };
}

export class RasterSurface {
  readonly #canvas: HTMLCanvasElement;
  readonly #client: RasterClient;
  readonly #events: SurfaceEvents;
  readonly #marginShare: number;
  #frame: Frame | null = null;
  #view: Viewport | null = null;
  #size: SizePx = { widthPx: 0, heightPx: 0 };

  /** `marginShare` of the width is drawn beyond either side, so that panning has slack. */
  constructor(canvas: HTMLCanvasElement, events: SurfaceEvents, marginShare = 0) {
    this.#canvas = canvas;
    this.#events = events;
    this.#marginShare = marginShare;
    this.#client = createRasterClient({
      onFrame: (frame) => this.#take(frame),
      onFailure: events.onFailure,
    });
  }

  get canvas(): HTMLCanvasElement {
    return this.#canvas;
  }

  setLayer(name: string, order: number, layer: Layer | null): void {
    this.#client.setLayer(name, order, layer);
  }

  setColours(colours: SceneColours): void {
    this.#client.setColours(colours);
  }

  /** Show a viewport; `size` is in device pixels. Paints at once, refines later. */
  show(view: Viewport, size: SizePx): void {
    if (size.widthPx < 1 || size.heightPx < 1) return;
    this.#view = view;
    this.#size = size;
    if (this.#canvas.width !== size.widthPx) this.#canvas.width = size.widthPx;
    if (this.#canvas.height !== size.heightPx) this.#canvas.height = size.heightPx;
    this.#paint();
    this.#ask();
  }

  /** Draw again after layers or colours changed. */
  refresh(): void {
    this.#ask();
  }

  /** What is drawn at a point of the canvas, in device pixels. */
  pick(xPx: number, yPx: number): Pick | null {
    const frame = this.#frame;
    if (frame === null || this.#view === null) return null;
    const x = pxToX(this.#view, this.#size.widthPx, xPx);
    const y = pxToY(this.#view, this.#size.heightPx, yPx);
    const { widthPx, heightPx } = frame.size;
    const { x0, x1, y0, y1 } = frame.view;
    const frameX = ((x - x0) / (x1 - x0)) * widthPx;
    const frameY = ((y - y0) / (y1 - y0)) * heightPx;
    const id = pickId(frame.ids, widthPx, heightPx, frameX, frameY);
    return id === NO_ID ? null : resolvePick(frame.spans, id);
  }

  dispose(): void {
    this.#client.dispose();
  }

  #ask(): void {
    if (this.#view === null || this.#size.widthPx < 1) return;
    const px = Math.round(this.#marginShare * this.#size.widthPx);
    const { view, size } = withMargin(this.#view, this.#size, px);
    this.#client.draw(view, size);
  }

  #take(frame: Frame): void {
    if (this.#frame !== null) this.#client.release(this.#frame);
    this.#frame = frame;
    this.#paint();
    this.#events.onPaint(frame);
  }

  #paint(): void {
    const frame = this.#frame;
    // Reading back is rare, but an accelerated canvas on a software GPU is 20x slower.
    const context = this.#canvas.getContext("2d", { willReadFrequently: true });
    if (frame === null || this.#view === null || context === null) return;
    const { widthPx, heightPx } = this.#size;
    context.clearRect(0, 0, widthPx, heightPx);
    context.imageSmoothingEnabled = false;
    if (sameView(frame.view, this.#view) && frame.size.widthPx === widthPx) {
      context.drawImage(frame.image, 0, 0, widthPx, heightPx);
      return;
    }
    const { x, y, width, height } = frameRect(frame.view, this.#view, this.#size);
    context.drawImage(frame.image, x, y, width, height);
  }
}
