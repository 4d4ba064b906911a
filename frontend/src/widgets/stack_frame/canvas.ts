/** Canvases of stacked charts. */

import { tokens, type Theme } from "../../base/tokens";
import { pixelOf } from "../../render/palette";
import { createRaster, drawQuads, type Quads } from "../../render/raster";
import type { SizePx, Viewport } from "../../render/viewport";

/** A cleared canvas of this size whose unit is the CSS px; null without one. */
export function fitted(
  canvas: HTMLCanvasElement | null,
  widthPx: number,
  heightPx: number,
): CanvasRenderingContext2D | null {
  const context = canvas?.getContext("2d") ?? null;
  if (canvas === null || context === null) return null;
  const scale = window.devicePixelRatio;
  canvas.width = Math.round(widthPx * scale);
  canvas.height = Math.round(heightPx * scale);
  canvas.style.width = `${widthPx}px`;
  canvas.style.height = `${heightPx}px`;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

/** Quads, drawn by the raster core on a canvas of this size in CSS px. */
export function drawQuadsOn(
  canvas: HTMLCanvasElement | null,
  quads: Quads,
  view: Viewport,
  size: SizePx,
  theme: Theme,
): void {
  const context = canvas?.getContext("2d", { willReadFrequently: true }) ?? null;
  if (canvas === null || context === null) return;
  const scale = window.devicePixelRatio;
  const widthPx = Math.max(1, Math.round(size.widthPx * scale));
  const heightPx = Math.max(1, Math.round(size.heightPx * scale));
  canvas.width = widthPx;
  canvas.height = heightPx;
  canvas.style.width = `${size.widthPx}px`;
  canvas.style.height = `${size.heightPx}px`;
  const raster = createRaster(widthPx, heightPx, pixelOf(tokens(theme).bg));
  drawQuads(raster, view, quads, 0);
  const bytes = new Uint8ClampedArray(raster.pixels.buffer);
  context.putImageData(new ImageData(bytes, widthPx, heightPx), 0, 0);
}
