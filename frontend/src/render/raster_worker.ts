/** The worker's end of the protocol: a scene, and drawings of it as bitmaps. */

import type { RasterReply, RasterRequest } from "./protocol";
import { Scene } from "./scene";

const scene = new Scene();
let canvas: OffscreenCanvas | null = null;

function bitmapOf(
  pixels: Uint32Array<ArrayBuffer>,
  widthPx: number,
  heightPx: number,
): ImageBitmap {
  if (canvas?.width !== widthPx || canvas.height !== heightPx) {
    canvas = new OffscreenCanvas(widthPx, heightPx);
  }
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) throw new Error("this browser gives workers no 2d canvas");
  const bytes = new Uint8ClampedArray(pixels.buffer);
  context.putImageData(new ImageData(bytes, widthPx, heightPx), 0, 0);
  return canvas.transferToImageBitmap();
}

function reply(message: RasterReply, transfer: Transferable[]): void {
  self.postMessage(message, { transfer });
}

function draw(request: RasterRequest & { readonly kind: "draw" }): void {
  const start = performance.now();
  const drawing = scene.draw(request.view, request.size, request.spent);
  const { view, size, ids, spans } = drawing;
  const image = bitmapOf(drawing.pixels, size.widthPx, size.heightPx);
  const drawMs = performance.now() - start;
  reply({ kind: "frame", view, size, image, ids, spans, drawMs }, [image, ids.buffer]);
}

function handle(request: RasterRequest): void {
  if (request.kind === "layer") {
    scene.setLayer(request.name, request.order, request.layer);
  } else if (request.kind === "colours") scene.setColours(request.colours);
  else draw(request);
}

self.addEventListener("message", (event: MessageEvent<RasterRequest>) => {
  try {
    handle(event.data);
  } catch (error) {
    reply({ kind: "failed", message: String(error) }, []);
  }
});
