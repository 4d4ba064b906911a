/** What the Timeline can do by key, palette and the shell's export menu. */

import type { Command } from "../../base/commands";
import { panStep, zoomStep } from "../../render/gestures";
import type { Limits, Viewport } from "../../render/viewport";
import { exportAs, type ExportSource } from "../../widgets/export/export_menu";
import type { XRange } from "../../widgets/line_chart/types";

/** Asked when a command runs, so that it acts on what is shown then. */
export interface TimelineNow {
  readonly extent: () => XRange;
  readonly range: () => XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly toPeak: () => void;
}

/** The least part of the run that keys zoom into. */
const LEAST_SHARE = 1e-5;

/** The range after a key moved or zoomed it; null where that is everything. */
export function rangeAfter(
  now: Pick<TimelineNow, "extent" | "range">,
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

export function viewCommands(now: TimelineNow): readonly Command[] {
  const group = "Timeline";
  const moving = (
    id: string,
    label: string,
    key: string,
    move: (view: Viewport, limits: Limits) => Viewport,
  ): Command => ({
    id: `timeline.${id}`,
    label,
    group,
    key,
    run: () => {
      now.setRange(rangeAfter(now, move));
    },
  });
  return [
    {
      id: "timeline.fit",
      label: "Show the whole run",
      group,
      key: "f",
      run: () => {
        now.setRange(null);
      },
    },
    {
      id: "timeline.peak",
      label: "Jump to the peak",
      group,
      key: "p",
      run: now.toPeak,
    },
    moving("in", "Zoom in", "w", (view, limits) => zoomStep(view, limits, -1, "x")),
    moving("out", "Zoom out", "s", (view, limits) => zoomStep(view, limits, 1, "x")),
    moving("left", "Move left", "a", (view, limits) => panStep(view, limits, -1)),
    moving("right", "Move right", "d", (view, limits) => panStep(view, limits, 1)),
  ];
}

export function exportCommands(
  subject: string,
  source: { readonly current: ExportSource | null },
): readonly Command[] {
  return (["csv", "json", "png", "svg"] as const).map((format) => ({
    id: `timeline.export.${subject}.${format}`,
    label: `The ${subject} as ${format.toUpperCase()}`,
    group: "Export",
    run: () => {
      // The menu beside the drawing shows failures; this one has no place to.
      if (source.current !== null) void exportAs(format, source.current);
    },
  }));
}
