/** Zooming and panning by key and palette: the same on every view with an x axis. */

import type { Command } from "../../base/commands";
import { panStep, zoomStep } from "../../render/gestures";
import type { Limits, Viewport } from "../../render/viewport";
import type { XRange } from "../../widgets/line_chart/types";

/** Asked when a command runs, so that it acts on what is shown then. */
export interface RangeNow {
  readonly extent: () => XRange;
  readonly range: () => XRange | null;
  readonly setRange: (range: XRange | null) => void;
}

/** The least part of the run that keys zoom into. */
const LEAST_SHARE = 1e-5;

/** The range after a key moved or zoomed it; null where that is everything. */
export function rangeAfter(
  now: Pick<RangeNow, "extent" | "range">,
  move: (view: Viewport, limits: Limits) => Viewport,
): XRange | null {
  const { low, high } = now.extent();
  const from = now.range() ?? { low, high };
  const limits = {
    world: { x0: low, x1: high, y0: 0, y1: 1 },
    leastX: (high - low) * LEAST_SHARE,
    leastY: 1,
  };
  const view = move({ x0: from.low, x1: from.high, y0: 0, y1: 1 }, limits);
  return view.x0 <= low && view.x1 >= high ? null : { low: view.x0, high: view.x1 };
}

export function rangeCommands(group: string, now: RangeNow): readonly Command[] {
  const moving = (
    id: string,
    label: string,
    key: string,
    move: (view: Viewport, limits: Limits) => Viewport,
  ): Command => ({
    id: `range.${id}`,
    label,
    group,
    key,
    run: () => now.setRange(rangeAfter(now, move)),
  });
  return [
    {
      id: "range.fit",
      label: "Show everything",
      group,
      key: "f",
      run: () => now.setRange(null),
    },
    moving("in", "Zoom in", "w", (view, limits) => zoomStep(view, limits, -1, "x")),
    moving("out", "Zoom out", "s", (view, limits) => zoomStep(view, limits, 1, "x")),
    moving("left", "Move left", "a", (view, limits) => panStep(view, limits, -1)),
    moving("right", "Move right", "d", (view, limits) => panStep(view, limits, 1)),
  ];
}
