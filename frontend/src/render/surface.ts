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

export class RasterSurface {
  readonly #canvas: HTMLCanvasElement;
  readonly #client: RasterClient;
  readonly #events: SurfaceEvents;
  #frame: Frame | null = null;
  #view: Viewport | null = null;
  #size: SizePx = { widthPx: 0, heightPx: 0 };

  constructor(canvas: HTMLCanvasElement, events: SurfaceEvents) {
    this.#canvas = canvas;
    this.#events = events;
    this.#client = createRasterClient({
      onFrame: (frame) => {
        this.#take(frame);
      },
      onFailure: events.onFailure,
    });
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
    this.#client.draw(view, size);
  }

  /** Draw again after layers or colours changed. */
  refresh(): void {
    if (this.#view !== null) this.#client.draw(this.#view, this.#size);
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
