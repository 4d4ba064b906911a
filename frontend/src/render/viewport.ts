/** World units; y0 is the top edge, so y0 > y1 is an axis that grows upwards. */

export interface Viewport {
  readonly x0: number;
  readonly x1: number;
  readonly y0: number;
  readonly y1: number;
}

export interface SizePx {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** More device pixels per CSS px cost time without a visible gain. */
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

/** `leastX`, `leastY`: the smallest spans. */
export interface Limits {
  readonly world: Viewport;
  readonly leastX: number;
  readonly leastY: number;
}

export interface RectPx {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export function sameView(a: Viewport, b: Viewport): boolean {
  return a.x0 === b.x0 && a.x1 === b.x1 && a.y0 === b.y0 && a.y1 === b.y1;
}

export function xToPx(view: Viewport, widthPx: number, x: number): number {
  return ((x - view.x0) / (view.x1 - view.x0)) * widthPx;
}

export function yToPx(view: Viewport, heightPx: number, y: number): number {
  return ((y - view.y0) / (view.y1 - view.y0)) * heightPx;
}

export function pxToX(view: Viewport, widthPx: number, px: number): number {
  return view.x0 + (px / widthPx) * (view.x1 - view.x0);
}

export function pxToY(view: Viewport, heightPx: number, px: number): number {
  return view.y0 + (px / heightPx) * (view.y1 - view.y0);
}

/** Moves [low, high] inside [min, max]; the span changes only if it does not fit. */
function clampSpan(
  low: number,
  high: number,
  min: number,
  max: number,
  least: number,
): readonly [number, number] {
  const room = max - min;
  const span = Math.min(Math.max(high - low, Math.min(least, room)), room);
  const centre = (low + high) / 2;
  const start = Math.min(Math.max(centre - span / 2, min), max - span);
  return [start, start + span];
}

/** The direction of the y axis is that of the world. */
export function clampView(view: Viewport, limits: Limits): Viewport {
  const { world } = limits;
  const [x0, x1] = clampSpan(view.x0, view.x1, world.x0, world.x1, limits.leastX);
  const down = world.y0 <= world.y1;
  const [low, high] = clampSpan(
    Math.min(view.y0, view.y1),
    Math.max(view.y0, view.y1),
    Math.min(world.y0, world.y1),
    Math.max(world.y0, world.y1),
    limits.leastY,
  );
  return down ? { x0, x1, y0: low, y1: high } : { x0, x1, y0: high, y1: low };
}

/** Factors below 1 zoom in; the world point `anchor` stays in place. */
export function zoomAt(
  view: Viewport,
  limits: Limits,
  anchor: { readonly x: number; readonly y: number },
  factorX: number,
  factorY: number,
): Viewport {
  const spanX = view.x1 - view.x0;
  const spanY = view.y1 - view.y0;
  const nextX = Math.max(spanX * factorX, limits.leastX);
  const nextY = Math.sign(spanY) * Math.max(Math.abs(spanY) * factorY, limits.leastY);
  const x0 = anchor.x - ((anchor.x - view.x0) / spanX) * nextX;
  const y0 = anchor.y - ((anchor.y - view.y0) / spanY) * nextY;
  return clampView({ x0, x1: x0 + nextX, y0, y1: y0 + nextY }, limits);
}

/** World distances; at the edges the span does not change. */
export function panBy(
  view: Viewport,
  limits: Limits,
  dx: number,
  dy: number,
): Viewport {
  return clampView(
    { x0: view.x0 + dx, x1: view.x1 + dx, y0: view.y0 + dy, y1: view.y1 + dy },
    limits,
  );
}

export function boxView(view: Viewport, size: SizePx, box: RectPx): Viewport {
  return {
    x0: pxToX(view, size.widthPx, box.x),
    x1: pxToX(view, size.widthPx, box.x + box.width),
    y0: pxToY(view, size.heightPx, box.y),
    y1: pxToY(view, size.heightPx, box.y + box.height),
  };
}

/** Px of a drawing of `frame` while `shown` fills `size`. */
export function frameRect(frame: Viewport, shown: Viewport, size: SizePx): RectPx {
  const x = xToPx(shown, size.widthPx, frame.x0);
  const y = yToPx(shown, size.heightPx, frame.y0);
  return {
    x,
    y,
    width: xToPx(shown, size.widthPx, frame.x1) - x,
    height: yToPx(shown, size.heightPx, frame.y1) - y,
  };
}
