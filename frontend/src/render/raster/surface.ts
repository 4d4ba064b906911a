/**
 * Shows the newest drawing, stretched to the current viewport until the worker has
 * drawn that one. At most one drawing is in progress, always of the newest viewport.
 */

import type { Signal } from "@preact/signals";
import type { PointPx } from "../gestures";
import {
  devicePx,
  frameRect,
  pixelRatio,
  pxToX,
  pxToY,
  sameView,
  xToPx,
  yToPx,
  type SizePx,
  type Viewport,
} from "../viewport";
import { pickId } from "./raster";
import type { Frame, RasterReply, RasterRequest } from "./raster_worker";
import { moved, resolvePick, type Layer, type Pick, type SceneColours } from "./scene";

interface SurfaceHost {
  /** Its `data-draw-ms`: how long the newest drawing took. */
  readonly root: HTMLElement | null;
  /** "": drawing works. */
  readonly failure: Signal<string>;
  readonly onDraw?: () => void;
}

export class RasterSurface {
  readonly #worker: Worker;
  #busy = false;
  #wanted = false;
  #frame: Frame | null = null;
  #spent: Int32Array<ArrayBuffer> | null = null;
  #view: Viewport | null = null;
  #size: SizePx = { widthPx: 0, heightPx: 0 };

  /** `marginShare` of the width is drawn beyond either side, as slack for panning. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly host: SurfaceHost,
    private readonly marginShare = 0,
  ) {
    this.#worker = new Worker(new URL("./raster_worker.ts", import.meta.url), {
      type: "module",
    });
    this.#worker.addEventListener("message", (event: MessageEvent<RasterReply>) => {
      if (event.data.kind === "failed") host.failure.value = event.data.message;
      else this.#take(event.data);
      this.#busy = false;
      if (this.#wanted) this.refresh();
    });
    this.#worker.addEventListener("error", (event) => {
      this.#busy = false;
      host.failure.value = event.message || "the raster worker could not be loaded";
    });
  }

  setLayer(name: string, order: number, layer: Layer | null): void {
    // Cloning would serialise the arrays; a transferred copy is the only copy.
    const buffers: ArrayBuffer[] = [];
    const sent = layer === null ? null : moved(layer, buffers);
    this.#send({ kind: "layer", name, order, layer: sent }, buffers);
  }

  setColours(colours: SceneColours): void {
    this.#send({ kind: "colours", colours });
  }

  /** `sizePx` in CSS px. Paints at once, refines later. */
  show(view: Viewport, sizePx: SizePx): void {
    const size = devicePx(sizePx);
    if (size.widthPx < 1 || size.heightPx < 1) return;
    this.#view = view;
    this.#size = size;
    if (this.canvas.width !== size.widthPx) this.canvas.width = size.widthPx;
    if (this.canvas.height !== size.heightPx) this.canvas.height = size.heightPx;
    this.#paint();
    this.refresh();
  }

  refresh(): void {
    const [view, { widthPx, heightPx }] = [this.#view, this.#size];
    if (view === null || widthPx < 1) return;
    this.#wanted = this.#busy;
    if (this.#busy) return;
    this.#busy = true;
    const px = Math.round(this.marginShare * widthPx);
    const slack = (px / widthPx) * (view.x1 - view.x0);
    const spent = this.#spent;
    this.#spent = null;
    const wide = { ...view, x0: view.x0 - slack, x1: view.x1 + slack };
    const size = { widthPx: widthPx + 2 * px, heightPx };
    const buffers = spent === null ? [] : [spent.buffer];
    this.#send({ kind: "draw", view: wide, size, spent }, buffers);
  }

  /** CSS px. */
  pick(point: PointPx): Pick | null {
    const [frame, view, ratio] = [this.#frame, this.#view, pixelRatio()];
    if (frame === null || view === null) return null;
    const { widthPx, heightPx } = frame.size;
    const seen = this.#size;
    const x = pxToX(view, seen.widthPx / ratio, point.x);
    const y = pxToY(view, seen.heightPx / ratio, point.y);
    const px = xToPx(frame.view, widthPx, x);
    const py = yToPx(frame.view, heightPx, y);
    return resolvePick(frame.spans, pickId(frame.ids, widthPx, heightPx, px, py));
  }

  dispose(): void {
    this.#worker.terminate();
  }

  #send(request: RasterRequest, transfer: Transferable[] = []): void {
    this.#worker.postMessage(request, transfer);
  }

  #take(frame: Frame): void {
    this.#frame?.image.close();
    this.#spent = this.#frame?.ids ?? null;
    this.#frame = frame;
    this.#paint();
    const { root, failure, onDraw } = this.host;
    failure.value = "";
    if (root !== null) root.dataset["drawMs"] = frame.drawMs.toFixed(2);
    onDraw?.();
  }

  #paint(): void {
    const [frame, view] = [this.#frame, this.#view];
    // Reading back is rare, but an accelerated canvas on a software GPU is 20x slower.
    const context = this.canvas.getContext("2d", { willReadFrequently: true });
    if (frame === null || view === null || context === null) return;
    const { widthPx, heightPx } = this.#size;
    context.clearRect(0, 0, widthPx, heightPx);
    context.imageSmoothingEnabled = false;
    const exact = sameView(frame.view, view) && frame.size.widthPx === widthPx;
    const { x, y, width, height } = exact
      ? { x: 0, y: 0, width: widthPx, height: heightPx }
      : frameRect(frame.view, view, this.#size);
    context.drawImage(frame.image, x, y, width, height);
  }
}
