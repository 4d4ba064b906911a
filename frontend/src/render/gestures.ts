/** Wheel and W/S zoom, drag and A/D pan, shift-drag draws a box, double click fits. */

import type { Limits, RectPx, SizePx, Viewport } from "./viewport";
import { boxView, clampView, panBy, pxToX, pxToY, sameView, zoomAt } from "./viewport";

export type Axes = "x" | "y" | "both";

export interface PointPx {
  readonly x: number;
  readonly y: number;
}

interface GestureHost {
  /** The plot's corner inside the target, in CSS px; points are relative to it. */
  readonly origin: PointPx;
  /** CSS px. */
  readonly size: () => SizePx;
  readonly view: () => Viewport;
  readonly limits: () => Limits;
  readonly wheelAxes: (point: PointPx) => Axes;
  readonly dragAxes: Axes;
  readonly onView: (view: Viewport) => void;
  readonly onFit: () => void;
  /** null: the box is done or cancelled. */
  readonly onBox: (box: RectPx | null) => void;
  /** Not called for boxes below CLICK_PX. */
  readonly onBoxDone: (view: Viewport, box: RectPx) => void;
  readonly onHover: (point: PointPx | null) => void;
  readonly onClick: (point: PointPx) => void;
}

/** A shorter movement is a click. */
const CLICK_PX = 4;
const ZOOM_STEP = 0.8;
const PAN_STEP = 0.15;

/** Equal for wheels, trackpads and deltas in lines. */
export function wheelFactor(deltaY: number, deltaMode: number): number {
  const px = deltaMode === 0 ? deltaY : deltaY * 33;
  return Math.exp(Math.min(Math.max(px, -240), 240) * 0.0022);
}

/** Clipped to the plot. */
export function boxOf(from: PointPx, to: PointPx, size: SizePx): RectPx {
  const x0 = Math.max(0, Math.min(from.x, to.x));
  const y0 = Math.max(0, Math.min(from.y, to.y));
  const x1 = Math.min(size.widthPx, Math.max(from.x, to.x));
  const y1 = Math.min(size.heightPx, Math.max(from.y, to.y));
  return { x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0) };
}

/** -1 zooms in, +1 out. */
export function zoomStep(
  view: Viewport,
  limits: Limits,
  sign: number,
  axes: Axes,
): Viewport {
  const factor = sign < 0 ? ZOOM_STEP : 1 / ZOOM_STEP;
  const middle = { x: (view.x0 + view.x1) / 2, y: (view.y0 + view.y1) / 2 };
  return zoomAt(
    view,
    limits,
    middle,
    axes === "y" ? 1 : factor,
    axes === "x" ? 1 : factor,
  );
}

export function panStep(view: Viewport, limits: Limits, sign: number): Viewport {
  return panBy(view, limits, sign * PAN_STEP * (view.x1 - view.x0), 0);
}

export function viewAfterKey(
  key: string,
  view: Viewport,
  limits: Limits,
  axes: Axes,
): Viewport | null {
  const zoom = { w: -1, "+": -1, "=": -1, s: 1, "-": 1 }[key.toLowerCase()];
  if (zoom !== undefined) return zoomStep(view, limits, zoom, axes);
  const pan = { a: -1, d: 1 }[key.toLowerCase()];
  return pan === undefined ? null : panStep(view, limits, pan);
}

interface Drag {
  readonly pointerId: number;
  readonly from: PointPx;
  readonly view: Viewport;
  readonly box: boolean;
  moved: boolean;
}

/** Returns a function that stops listening. */
export function attachGestures(target: HTMLElement, host: GestureHost): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  let drag: Drag | null = null;

  function pointOf(event: MouseEvent): PointPx {
    const rect = target.getBoundingClientRect();
    return {
      x: event.clientX - rect.left - host.origin.x,
      y: event.clientY - rect.top - host.origin.y,
    };
  }

  function dragged(state: Drag, point: PointPx): Viewport {
    const size = host.size();
    const { view } = state;
    const dx = ((state.from.x - point.x) / size.widthPx) * (view.x1 - view.x0);
    const dy = ((state.from.y - point.y) / size.heightPx) * (view.y1 - view.y0);
    const axes = host.dragAxes;
    return panBy(view, host.limits(), axes === "y" ? 0 : dx, axes === "x" ? 0 : dy);
  }

  function end(event: PointerEvent, cancelled: boolean): void {
    const state = drag;
    if (state?.pointerId !== event.pointerId) return;
    drag = null;
    target.classList.remove("is-dragging");
    const point = pointOf(event);
    if (state.box) host.onBox(null);
    if (state.moved) host.onHover(point);
    if (cancelled) return;
    if (!state.moved) {
      host.onClick(point);
      return;
    }
    if (!state.box) return;
    const box = boxOf(state.from, point, host.size());
    host.onBoxDone(
      clampView(boxView(state.view, host.size(), box), host.limits()),
      box,
    );
  }

  function onDown(event: PointerEvent): void {
    if (event.button !== 0 || drag !== null) return;
    target.setPointerCapture(event.pointerId);
    const from = pointOf(event);
    const { pointerId, shiftKey } = event;
    drag = { pointerId, from, view: host.view(), box: shiftKey, moved: false };
  }

  function onMove(event: PointerEvent): void {
    const point = pointOf(event);
    const state = drag;
    if (state?.pointerId !== event.pointerId) {
      host.onHover(point);
      return;
    }
    const distance = Math.hypot(point.x - state.from.x, point.y - state.from.y);
    if (!state.moved && distance < CLICK_PX) return;
    if (!state.moved) {
      // The value under a dragged point does not change: no hover.
      host.onHover(null);
      state.moved = true;
    }
    if (state.box) {
      host.onBox(boxOf(state.from, point, host.size()));
    } else {
      target.classList.add("is-dragging");
      host.onView(dragged(state, point));
    }
  }

  function onWheel(event: WheelEvent): void {
    const pointPx = pointOf(event);
    const size = host.size();
    const view = host.view();
    const limits = host.limits();
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    let next: Viewport;
    if (sideways) {
      next = panBy(
        view,
        limits,
        (event.deltaX / size.widthPx) * (view.x1 - view.x0),
        0,
      );
    } else {
      const factor = wheelFactor(event.deltaY, event.deltaMode);
      const axes = host.wheelAxes(pointPx);
      const point = {
        x: pxToX(view, size.widthPx, pointPx.x),
        y: pxToY(view, size.heightPx, pointPx.y),
      };
      const x = axes === "y" ? 1 : factor;
      next = zoomAt(view, limits, point, x, axes === "x" ? 1 : factor);
    }
    // At the widest view the wheel scrolls the page.
    if (sameView(next, view)) return;
    event.preventDefault();
    host.onView(next);
    host.onHover(pointPx);
  }

  target.addEventListener("pointerdown", onDown, { signal });
  target.addEventListener("pointermove", onMove, { signal });
  target.addEventListener("wheel", onWheel, { signal, passive: false });
  target.addEventListener("dblclick", host.onFit, { signal });
  target.addEventListener("pointerup", (event) => end(event, false), { signal });
  target.addEventListener("pointercancel", (event) => end(event, true), { signal });
  target.addEventListener(
    "pointerleave",
    () => {
      if (drag === null) host.onHover(null);
    },
    { signal },
  );
  return () => stop.abort();
}
