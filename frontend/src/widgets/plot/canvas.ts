/** Canvases whose unit is the CSS px. */

import { useLayoutEffect, useState } from "preact/hooks";
import type { SizePx } from "../../render/viewport";

/** More device pixels a CSS px cost time that no eye repays. */
const MOST_PIXEL_RATIO = 2;

export function pixelRatio(): number {
  return Math.min(window.devicePixelRatio || 1, MOST_PIXEL_RATIO);
}

export function devicePx({ widthPx, heightPx }: SizePx): SizePx {
  const ratio = pixelRatio();
  return {
    widthPx: Math.round(widthPx * ratio),
    heightPx: Math.round(heightPx * ratio),
  };
}

/** A cleared canvas of this size; null without one. */
export function fitted(
  canvas: HTMLCanvasElement | null,
  widthPx: number,
  heightPx: number,
): CanvasRenderingContext2D | null {
  const context = canvas?.getContext("2d") ?? null;
  if (canvas === null || context === null) return null;
  const ratio = pixelRatio();
  const [wide, tall] = [Math.round(widthPx * ratio), Math.round(heightPx * ratio)];
  context.setTransform(1, 0, 0, 1, 0, 0);
  // Setting a size costs more than clearing.
  if (canvas.width !== wide || canvas.height !== tall) {
    canvas.width = wide;
    canvas.height = tall;
    canvas.style.width = `${widthPx}px`;
    canvas.style.height = `${heightPx}px`;
  } else context.clearRect(0, 0, wide, tall);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** The width an element was given, followed as the window changes. */
export function useWidth(ref: { readonly current: HTMLElement | null }): number {
  const [widthPx, setWidthPx] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const measure = (): void => {
      // A hidden TensorBoard tab gives its iframe no size; keep the last one.
      if (element.clientWidth > 0) setWidthPx(element.clientWidth);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref]);
  return widthPx;
}
