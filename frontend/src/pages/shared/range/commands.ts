/** Zooming and panning by key and palette: the same on every view with an x axis. */

import { commandsOf, type Command } from "../../../base/commands";
import { panStep, zoomStep } from "../../../render/gestures";
import type { Limits, Viewport } from "../../../render/viewport";
import type { XRange } from "../../../widgets/plot/range";

export interface RangeNow {
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}

/** The least part of the run that keys zoom into. */
const LEAST_SHARE = 1e-5;

/** The range after a key moved or zoomed it; null where that is everything. */
export function rangeAfter(
  { extent, range }: Pick<RangeNow, "extent" | "range">,
  move: (view: Viewport, limits: Limits) => Viewport,
): XRange | null {
  const { low, high } = extent;
  const from = range ?? extent;
  const limits = {
    world: { x0: low, x1: high, y0: 0, y1: 1 },
    leastX: (high - low) * LEAST_SHARE,
    leastY: 1,
  };
  const view = move({ x0: from.low, x1: from.high, y0: 0, y1: 1 }, limits);
  return view.x0 <= low && view.x1 >= high ? null : { low: view.x0, high: view.x1 };
}

export function rangeCommands(group: string, now: RangeNow): readonly Command[] {
  const moving = (move: (view: Viewport, limits: Limits) => Viewport) => () =>
    now.setRange(rangeAfter(now, move));
  const zoom = (sign: number) =>
    moving((view, limits) => zoomStep(view, limits, sign, "x"));
  const pan = (sign: number) => moving((view, limits) => panStep(view, limits, sign));
  return commandsOf("range", group, [
    ["fit", "Show everything", () => now.setRange(null), "f"],
    ["in", "Zoom in", zoom(-1), "w"],
    ["out", "Zoom out", zoom(1), "s"],
    ["left", "Move left", pan(-1), "a"],
    ["right", "Move right", pan(1), "d"],
  ]);
}
