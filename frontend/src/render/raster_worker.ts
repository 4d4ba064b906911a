/** The worker's end of the protocol: a scene, and drawings of it as bitmaps. */

import type { RasterReply, RasterRequest } from "./protocol";
import { Scene } from "./scene";

const scene = new Scene();

function reply(message: RasterReply, transfer: Transferable[]): void {
  self.postMessage(message, { transfer });
}

function fail(error: unknown): void {
  reply({ kind: "failed", message: String(error) }, []);
}

async function draw(request: RasterRequest & { readonly kind: "draw" }): Promise<void> {
  const start = performance.now();
  const { view, size, pixels, ids, spans } = scene.draw(
    request.view,
    request.size,
    request.spent,
  );
  const bytes = new Uint8ClampedArray(pixels.buffer);
  // Not by a canvas: the first one of a worker waits for the page's own thread.
  const image = await createImageBitmap(
    new ImageData(bytes, size.widthPx, size.heightPx),
  );
  const drawMs = performance.now() - start;
  reply({ kind: "frame", view, size, image, ids, spans, drawMs }, [image, ids.buffer]);
}

function handle(request: RasterRequest): void {
  if (request.kind === "layer") {
    scene.setLayer(request.name, request.order, request.layer);
  } else if (request.kind === "colours") scene.setColours(request.colours);
  else draw(request).catch(fail);
}

self.addEventListener("message", (event: MessageEvent<RasterRequest>) => {
  try {
    handle(event.data);
  } catch (error) {
    fail(error);
  }
});
