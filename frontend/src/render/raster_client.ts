/**
 * The page's end of the raster: it sends layers, asks for drawings and keeps at most
 * one request under way, always for the newest viewport. Without bitmaps of its own the
 * scene is drawn on the main thread through the same interface.
 */

import type { Frame, RasterReply, RasterRequest } from "./protocol";
import type { Layer, SceneColours } from "./scene";
import { buffersOf, copyOf, Scene } from "./scene";
import type { SizePx, Viewport } from "./viewport";

export interface RasterClient {
  setLayer(name: string, order: number, layer: Layer | null): void;
  setColours(colours: SceneColours): void;
  /** Ask for a drawing; one still waiting is replaced. */
  draw(view: Viewport, size: SizePx): void;
  /** Give a frame back once nothing reads it any more. */
  release(frame: Frame): void;
  dispose(): void;
}

export interface RasterEvents {
  readonly onFrame: (frame: Frame) => void;
  readonly onFailure: (message: string) => void;
}

interface Wanted {
  readonly view: Viewport;
  readonly size: SizePx;
}

function workerClient(events: RasterEvents): RasterClient {
  const worker = new Worker(new URL("./raster_worker.ts", import.meta.url), {
    type: "module",
  });
  let busy = false;
  let wanted: Wanted | null = null;
  let spent: Int32Array<ArrayBuffer> | null = null;

  function send(request: RasterRequest, transfer: Transferable[] = []): void {
    worker.postMessage(request, transfer);
  }
  function next(): void {
    if (busy || wanted === null) return;
    busy = true;
    const { view, size } = wanted;
    wanted = null;
    send({ kind: "draw", view, size, spent }, spent === null ? [] : [spent.buffer]);
    spent = null;
  }
  worker.addEventListener("message", (event: MessageEvent<RasterReply>) => {
    busy = false;
    const message = event.data;
    if (message.kind === "failed") events.onFailure(message.message);
    else events.onFrame(message);
    next();
  });
  worker.addEventListener("error", (event) => {
    busy = false;
    events.onFailure(event.message || "the raster worker could not be loaded");
  });
  return {
    setLayer(name, order, layer) {
      // Cloned as they are, arrays would be written out and read in again: a copy that
      // moves is the only one.
      const sent = layer === null ? null : copyOf(layer);
      send({ kind: "layer", name, order, layer: sent }, buffersOf(sent));
    },
    setColours(colours) {
      send({ kind: "colours", colours });
    },
    draw(view, size) {
      wanted = { view, size };
      next();
    },
    release(frame) {
      if (frame.image instanceof ImageBitmap) frame.image.close();
      spent = frame.ids;
    },
    dispose() {
      worker.terminate();
    },
  };
}

function canvasOf(pixels: Uint32Array<ArrayBuffer>, size: SizePx): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = size.widthPx;
  canvas.height = size.heightPx;
  const bytes = new Uint8ClampedArray(pixels.buffer);
  const image = new ImageData(bytes, size.widthPx, size.heightPx);
  canvas.getContext("2d", { willReadFrequently: true })?.putImageData(image, 0, 0);
  return canvas;
}

function localClient(events: RasterEvents): RasterClient {
  const scene = new Scene();
  let wanted: Wanted | null = null;
  let timer: number | null = null;

  function drawNow(): void {
    timer = null;
    if (wanted === null) return;
    const start = performance.now();
    const { view, size, pixels, ids, spans } = scene.draw(wanted.view, wanted.size);
    wanted = null;
    const image = canvasOf(pixels, size);
    const drawMs = performance.now() - start;
    events.onFrame({ view, size, image, ids, spans, drawMs });
  }
  return {
    setLayer(name, order, layer) {
      scene.setLayer(name, order, layer);
    },
    setColours(colours) {
      scene.setColours(colours);
    },
    draw(view, size) {
      wanted = { view, size };
      timer ??= window.setTimeout(drawNow);
    },
    release() {
      // The garbage collector takes canvases.
    },
    dispose() {
      if (timer !== null) window.clearTimeout(timer);
    },
  };
}

export function createRasterClient(events: RasterEvents): RasterClient {
  const drawsInWorkers =
    typeof Worker === "function" && typeof createImageBitmap === "function";
  return drawsInWorkers ? workerClient(events) : localClient(events);
}
