import { describe, expect, it } from "vitest";
import type { Limits, Viewport } from "./viewport";
import { boxView, clampView, frameRect, panBy, pxToX, xToPx, zoomAt } from "./viewport";

const WORLD: Viewport = { x0: 0, x1: 10_000, y0: 0, y1: 4096 };
const LIMITS: Limits = { world: WORLD, leastX: 4, leastY: 2 };
const SIZE = { widthPx: 1000, heightPx: 400 };

describe("zoomAt", () => {
  it("keeps the world point under the pointer in place", () => {
    const view = { x0: 1000, x1: 3000, y0: 100, y1: 300 };
    const anchor = { x: 1500, y: 250 };
    const next = zoomAt(view, LIMITS, anchor, 0.5, 0.5);
    expect(xToPx(next, 1000, anchor.x)).toBeCloseTo(xToPx(view, 1000, anchor.x), 9);
    expect((anchor.y - next.y0) / (next.y1 - next.y0)).toBeCloseTo(0.75, 9);
    expect(next.x1 - next.x0).toBe(1000);
  });

  it("stops at the least span, and at the world on the way out", () => {
    let view = WORLD;
    for (let i = 0; i < 200; i += 1) {
      view = zoomAt(view, LIMITS, { x: 9999, y: 0.5 }, 0.7, 0.7);
    }
    expect(view.x1 - view.x0).toBeCloseTo(4, 9);
    expect(view.y1 - view.y0).toBeCloseTo(2, 9);
    for (let i = 0; i < 200; i += 1) {
      view = zoomAt(view, LIMITS, { x: view.x0, y: view.y0 }, 1.5, 1.5);
    }
    expect(view).toEqual(WORLD);
  });

  it("keeps the direction of an axis that grows upwards", () => {
    const world = { x0: 0, x1: 10, y0: 80, y1: 0 };
    const next = zoomAt(
      world,
      { world, leastX: 1, leastY: 1 },
      { x: 5, y: 60 },
      0.5,
      0.5,
    );
    expect(next.y0).toBeGreaterThan(next.y1);
    expect(next.y0 - next.y1).toBeCloseTo(40, 9);
  });
});

describe("panBy", () =>
  it("stops at the edge without changing the span", () => {
    const view = { x0: 100, x1: 200, y0: 0, y1: 10 };
    expect(panBy(view, LIMITS, -1e9, 1e9)).toEqual({
      x0: 0,
      x1: 100,
      y0: 4086,
      y1: 4096,
    });
  }));

describe("clampView", () =>
  it("shows the whole world when asked for more than it", () =>
    expect(clampView({ x0: -5, x1: 1e9, y0: -5, y1: 1e9 }, LIMITS)).toEqual(WORLD)));

describe("frameRect", () => {
  it("is where the old frame's corners lie in the new viewport", () => {
    const frame = { x0: 100, x1: 300, y0: 0, y1: 100 };
    const shown = { x0: 200, x1: 300, y0: 50, y1: 100 };
    const rect = frameRect(frame, shown, SIZE);
    expect(rect).toEqual({ x: -1000, y: -400, width: 2000, height: 800 });
  });

  it("inverts the box that made the viewport", () => {
    const box = { x: 250, y: 100, width: 500, height: 100 };
    const view = boxView(WORLD, SIZE, box);
    expect(frameRect(view, WORLD, SIZE)).toEqual(box);
    expect(pxToX(view, 1000, 0)).toBe(2500);
  });
});
