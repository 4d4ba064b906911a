/** What the Trace page can do by key, palette and the shell's export menu. */

import type { Command } from "../../base/commands";
import { panStep, zoomStep } from "../../render/gestures";
import type { Limits, Viewport } from "../../render/viewport";
import { exportCommands } from "../../widgets/export/export_commands";
import type { ExportSource } from "../../widgets/export/source";
import { LEAST_NS, type NsRange } from "./plot/place";

/** Asked when a command runs, so that it acts on what is shown then. */
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

export function traceCommands(now: () => TraceNow): readonly Command[] {
  const command = (
    id: string,
    label: string,
    run: (now: TraceNow) => void,
    key?: string,
  ): Command => ({
    id: `trace.${id}`,
    label,
    group: "Trace",
    ...(key === undefined ? {} : { key }),
    run: () => run(now()),
  });
  const moving = (
    id: string,
    label: string,
    key: string,
    move: (view: Viewport, limits: Limits) => Viewport,
  ): Command =>
    command(
      id,
      label,
      ({ window, world, setWindow }) => {
        const limits: Limits = {
          world: { x0: world.low, x1: world.high, y0: 0, y1: 1 },
          leastX: LEAST_NS,
          leastY: 1,
        };
        const view = move({ x0: window.low, x1: window.high, y0: 0, y1: 1 }, limits);
        setWindow({ low: view.x0, high: view.x1 });
      },
      key,
    );
  return [
    moving("in", "Zoom in", "w", (view, limits) => zoomStep(view, limits, -1, "x")),
    moving("out", "Zoom out", "s", (view, limits) => zoomStep(view, limits, 1, "x")),
    moving("left", "Pan to the left", "a", (view, limits) => panStep(view, limits, -1)),
    moving("right", "Pan to the right", "d", (view, limits) =>
      panStep(view, limits, 1),
    ),
    command("fit", "Show everything", ({ fit }) => fit(), "f"),
    command(
      "search",
      "Search names of slices and instants",
      ({ search }) => search(),
      "/",
    ),
    command("next", "Next that was found", ({ next }) => next(1), "n"),
    command("before", "Previous that was found", ({ next }) => next(-1)),
    command("later", "Next step", ({ step }) => step(1), "]"),
    command("earlier", "Previous step", ({ step }) => step(-1), "["),
    command("instant", "Next instant", ({ instant }) => instant(1), "."),
    command("instant_before", "Previous instant", ({ instant }) => instant(-1), ","),
    command("perfetto", "Open in Perfetto", ({ perfetto }) => perfetto()),
    command("table", "Sum up what is in sight by name", ({ table }) => table(), "t"),
    command("clear", "Give up what was chosen", ({ clear }) => clear(), "Escape"),
    ...exportCommands({
      view: "trace",
      subject: "sums by name",
      formats: ["csv", "json"],
      source: () => now().source,
      say: (sentence) => now().say(sentence),
    }),
  ];
}
