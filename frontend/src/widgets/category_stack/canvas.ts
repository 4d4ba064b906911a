/** The canvases of the stacked categories. */

import { tokens } from "../../base/tokens";
import { pixelOf } from "../../render/palette";
import { createRaster, drawQuads } from "../../render/raster";
import { stackQuads, type StackData } from "./layout";
import type { StackPaint } from "./paint";

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

/** The stack itself, drawn by the raster core. */
export function drawCells(
  canvas: HTMLCanvasElement | null,
  { view, size, theme }: StackPaint,
  answer: StackData,
  colours: readonly string[],
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
  const { bg } = tokens(theme);
  const raster = createRaster(widthPx, heightPx, pixelOf(bg));
  drawQuads(raster, view, stackQuads(answer, colours, bg, view, size), 0);
  const bytes = new Uint8ClampedArray(raster.pixels.buffer);
  context.putImageData(new ImageData(bytes, widthPx, heightPx), 0, 0);
}
