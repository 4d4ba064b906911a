import { useLayoutEffect, useState } from "preact/hooks";
import { tokens, type Theme } from "../../base/tokens";
import { pixelRatio } from "../../render/viewport";
import type { Pen } from "../export/pen";

/** Cleared, in CSS px; null without a canvas. */
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

/** "" where fewer than 4 letters fit. */
export function fitting(
  text: string,
  roomPx: number,
  widthOf: (text: string) => number,
): string {
  if (widthOf(text) <= roomPx) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (widthOf(`${text.slice(0, middle)}…`) <= roomPx) low = middle;
    else high = middle - 1;
  }
  return low < 4 ? "" : `${text.slice(0, low).trimEnd()}…`;
}

/** Readable on any background. */
export function haloText(
  pen: Pen,
  theme: Theme,
  text: string,
  x: number,
  y: number,
): void {
  pen.lineWidth = 3;
  pen.lineJoin = "round";
  pen.strokeStyle = tokens(theme).bg;
  pen.globalAlpha = 0.85;
  pen.strokeText(text, x, y);
  pen.globalAlpha = 1;
  pen.fillText(text, x, y);
}

/** No movement for this long ends a gesture. */
const SETTLE_MS = 140;

/** One frame at a time, and the end of each gesture. */
export class Turns {
  #frame = 0;
  #settle = 0;

  constructor(
    private readonly settled: () => void,
    private readonly paint: () => void = () => undefined,
  ) {}

  get isMoving(): boolean {
    return this.#settle !== 0;
  }

  paintSoon(): void {
    this.#frame ||= window.requestAnimationFrame(() => {
      this.#frame = 0;
      this.paint();
    });
  }

  moved(): void {
    window.clearTimeout(this.#settle);
    this.#settle = window.setTimeout(() => {
      this.#settle = 0;
      this.settled();
    }, SETTLE_MS);
  }

  stop(): void {
    window.clearTimeout(this.#settle);
    window.cancelAnimationFrame(this.#frame);
    this.#settle = this.#frame = 0;
  }
}

/**
 * A drawing too soon after the last waits, and only the newest one is drawn. A chart
 * that follows another one's drag is drawn less often, which leaves time for the one
 * under the pointer.
 */
export class Pace {
  #last = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #newest: () => void = () => undefined;

  constructor(private readonly pauseMs: number) {}

  /** At once where the pause is over or `urgent`. */
  ask(draw: () => void, urgent: boolean): void {
    const restMs = this.#last + this.pauseMs - performance.now();
    this.#newest = draw;
    if (urgent || restMs <= 0) {
      this.stop();
      this.#draw();
    } else this.#timer ??= setTimeout(() => this.#draw(), restMs);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #draw(): void {
    this.#timer = null;
    this.#last = performance.now();
    this.#newest();
  }
}
