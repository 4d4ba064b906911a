import type { SizePx, Viewport } from "../viewport";
import { Scene, type Drawing, type Layer, type SceneColours } from "./scene";

export type RasterRequest =
  | {
      readonly kind: "layer";
      readonly name: string;
      readonly order: number;
      readonly layer: Layer | null;
    }
  | { readonly kind: "colours"; readonly colours: SceneColours }
  | {
      readonly kind: "draw";
      readonly view: Viewport;
      readonly size: SizePx;
      /** An id buffer that the page no longer reads, for reuse. */
      readonly spent: Int32Array<ArrayBuffer> | null;
    };

export interface Frame extends Omit<Drawing, "pixels"> {
  readonly kind: "frame";
  readonly image: ImageBitmap;
  readonly drawMs: number;
}

export type RasterReply = Frame | { readonly kind: "failed"; readonly message: string };

const scene = new Scene();

function reply(message: RasterReply, transfer: Transferable[]): void {
  self.postMessage(message, { transfer });
}

async function handle(request: RasterRequest): Promise<void> {
  if (request.kind === "layer") {
    scene.setLayer(request.name, request.order, request.layer);
    return;
  }
  if (request.kind === "colours") {
    scene.setColours(request.colours);
    return;
  }
  const start = performance.now();
  const { pixels, ...drawn } = scene.draw(request.view, request.size, request.spent);
  const { widthPx, heightPx } = drawn.size;
  const bytes = new Uint8ClampedArray(pixels.buffer);
  // A worker's first canvas waits for the page's thread; ImageData does not.
  const image = await createImageBitmap(new ImageData(bytes, widthPx, heightPx));
  const drawMs = performance.now() - start;
  reply({ kind: "frame", ...drawn, image, drawMs }, [image, drawn.ids.buffer]);
}

self.addEventListener("message", ({ data }: MessageEvent<RasterRequest>) => {
  handle(data).catch((error: unknown) =>
    reply({ kind: "failed", message: String(error) }, []),
  );
});
