/** What the page and the raster worker say to each other. */

import type { Drawing, Layer, SceneColours } from "./scene";
import type { SizePx, Viewport } from "./viewport";

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
      /** An id buffer the page has finished with, given back to be filled again. */
      readonly spent: Int32Array<ArrayBuffer> | null;
    };

/** One finished drawing. `image` is drawn as is; `ids` answers picks. */
export interface Frame extends Omit<Drawing, "pixels"> {
  readonly kind: "frame";
  readonly image: ImageBitmap;
  readonly drawMs: number;
}

export type RasterReply = Frame | { readonly kind: "failed"; readonly message: string };
