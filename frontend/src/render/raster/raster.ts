import { xToPx, yToPx, type Viewport } from "../viewport";

export const NO_ID = -1;

export interface Raster {
  readonly widthPx: number;
  readonly heightPx: number;
  /** 0xAABBGGRR, row-major: ImageData's byte order on little-endian machines. */
  readonly pixels: Uint32Array<ArrayBuffer>;
  readonly ids: Int32Array<ArrayBuffer>;
}

/** World units; columns of equal length. */
export interface Quads {
  readonly x0: Float64Array;
  readonly x1: Float64Array;
  readonly y0: Float64Array;
  readonly y1: Float64Array;
  /** 0xAABBGGRR, opaque. */
  readonly colour: Uint32Array;
  /** Colour of the last px of wide quads: separates neighbours of one colour. */
  readonly seam?: number;
}

/** Buffers are reused where their size fits. */
export function createRaster(
  widthPx: number,
  heightPx: number,
  background: number,
  reuse: Int32Array<ArrayBuffer> | null = null,
  reusePixels: Uint32Array<ArrayBuffer> | null = null,
): Raster {
  const num = widthPx * heightPx;
  const pixels = reusePixels?.length === num ? reusePixels : new Uint32Array(num);
  const ids = reuse?.length === num ? reuse : new Int32Array(num);
  pixels.fill(background);
  ids.fill(NO_ID);
  return { widthPx, heightPx, pixels, ids };
}

export function pickId(
  ids: Int32Array,
  widthPx: number,
  heightPx: number,
  x: number,
  y: number,
): number {
  const column = Math.floor(x);
  const row = Math.floor(y);
  if (column < 0 || row < 0 || column >= widthPx || row >= heightPx) return NO_ID;
  return ids[row * widthPx + column] ?? NO_ID;
}

export function mixHalf(a: number, b: number): number {
  return (((a & 0xfefefe) >>> 1) + ((b & 0xfefefe) >>> 1) + 0xff000000) >>> 0;
}

const SEAMED_PX = 4;

/** At least one pixel, so that nothing thin vanishes. */
function pixelSpan(a: number, b: number, sizePx: number): readonly [number, number] {
  const low = Math.min(a, b);
  const high = Math.max(a, b);
  if (!(high >= 0) || !(low <= sizePx)) return [0, 0];
  const start = Math.max(0, Math.min(Math.round(low), sizePx - 1));
  return [start, Math.min(sizePx, Math.max(Math.round(high), start + 1))];
}

/** Later quads are on top; ids are `firstId` + the quad's row. */
export function drawQuads(
  raster: Raster,
  view: Viewport,
  quads: Quads,
  firstId = 0,
): void {
  const { widthPx, heightPx, pixels, ids } = raster;
  for (let i = 0; i < quads.colour.length; i += 1) {
    const [left, right] = pixelSpan(
      xToPx(view, widthPx, quads.x0[i] ?? NaN),
      xToPx(view, widthPx, quads.x1[i] ?? NaN),
      widthPx,
    );
    const [top, bottom] = pixelSpan(
      yToPx(view, heightPx, quads.y0[i] ?? NaN),
      yToPx(view, heightPx, quads.y1[i] ?? NaN),
      heightPx,
    );
    if (right <= left) continue;
    const colour = quads.colour[i] ?? 0;
    const seam = right - left >= SEAMED_PX ? quads.seam : undefined;
    for (let y = top; y < bottom; y += 1) {
      const start = y * widthPx;
      pixels.fill(colour, start + left, start + right);
      ids.fill(firstId + i, start + left, start + right);
      if (seam !== undefined) pixels[start + right - 1] = seam;
    }
  }
}
