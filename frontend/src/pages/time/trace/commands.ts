/** What the Trace page can do by key, palette and the shell's export menu. */

import { commandsOf, type Command } from "../../../base/commands";
import { panStep, zoomStep } from "../../../render/gestures";
import type { Limits, Viewport } from "../../../render/viewport";
import { exportCommands } from "../../../widgets/export/export_commands";
import type { ExportSource } from "../../../widgets/export/source";
import { LEAST_NS, type NsRange } from "./plot/place";

export interface TraceNow {
  readonly window: NsRange;
  readonly world: NsRange;
  readonly setWindow: (window: NsRange) => void;
  readonly fit: () => void;
  readonly search: () => void;
  readonly next: (sign: 1 | -1) => void;
  readonly step: (sign: 1 | -1) => void;
  readonly instant: (sign: 1 | -1) => void;
  readonly clear: () => void;
  readonly perfetto: () => void;
  readonly table: () => void;
  readonly source: ExportSource | null;
  readonly say: (sentence: string) => void;
}

export function traceCommands(now: TraceNow): readonly Command[] {
  const { window, world, next, step, instant } = now;
  const moving = (move: (view: Viewport, limits: Limits) => Viewport) => () => {
    const limits: Limits = {
      world: { x0: world.low, x1: world.high, y0: 0, y1: 1 },
      leastX: LEAST_NS,
      leastY: 1,
    };
    const view = move({ x0: window.low, x1: window.high, y0: 0, y1: 1 }, limits);
    now.setWindow({ low: view.x0, high: view.x1 });
  };
  const zoom = (sign: number) =>
    moving((view, limits) => zoomStep(view, limits, sign, "x"));
  const pan = (sign: number) => moving((view, limits) => panStep(view, limits, sign));
  return [
    ...commandsOf("trace", "Trace", [
      ["in", "Zoom in", zoom(-1), "w"],
      ["out", "Zoom out", zoom(1), "s"],
      ["left", "Pan to the left", pan(-1), "a"],
      ["right", "Pan to the right", pan(1), "d"],
      ["fit", "Show everything", now.fit, "f"],
      ["search", "Search names of slices and instants", now.search, "/"],
      ["next", "Next that was found", () => next(1), "n"],
      ["before", "Previous that was found", () => next(-1)],
      ["later", "Next step", () => step(1), "]"],
      ["earlier", "Previous step", () => step(-1), "["],
      ["instant", "Next instant", () => instant(1), "."],
      ["instant_before", "Previous instant", () => instant(-1), ","],
      ["perfetto", "Open in Perfetto", now.perfetto],
      ["table", "Sum up what is in sight by name", now.table, "t"],
      ["clear", "Give up what was chosen", now.clear, "Escape"],
    ]),
    ...exportCommands({
      view: "trace",
      subject: "sums by name",
      formats: ["csv", "json"],
      source: () => now.source,
      say: now.say,
    }),
  ];
}
