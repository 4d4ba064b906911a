/** What the Segments page can do by key, palette and the shell's export menu. */

import type { Command } from "../../base/commands";
import { exportCommands } from "../../widgets/export/export_commands";
import { ALL_FORMATS, type ExportSource } from "../../widgets/export/source";
import type { TransportActions } from "./transport";

/** Asked when a command runs, so that it acts on what is shown then. */
export interface SegmentsNow {
  readonly actions: TransportActions;
  readonly play: () => void;
  readonly clear: () => void;
  readonly source: ExportSource | null;
  readonly pinners: ExportSource | null;
  readonly openAllocations: () => void;
  readonly compare: () => void;
  readonly say: (sentence: string) => void;
}

export function segmentCommands(now: () => SegmentsNow): readonly Command[] {
  const command = (
    id: string,
    label: string,
    run: (now: SegmentsNow) => void,
    key?: string,
  ): Command => ({
    id: `segments.${id}`,
    label,
    group: "Segments",
    ...(key === undefined ? {} : { key }),
    run: () => run(now()),
  });
  const act = (
    id: string,
    label: string,
    run: (actions: TransportActions) => void,
    key?: string,
  ): Command => command(id, label, ({ actions }) => run(actions), key);
  return [
    command("play", "Play or pause", ({ play }) => play(), " "),
    act("earlier", "One event back", ({ step }) => step(-1), "ArrowLeft"),
    act("later", "One event on", ({ step }) => step(1), "ArrowRight"),
    act("much-earlier", "Ten events back", ({ step }) => step(-10), "Shift+ArrowLeft"),
    act("much-later", "Ten events on", ({ step }) => step(10), "Shift+ArrowRight"),
    act("peak", "Go to the peak of reserved memory", ({ toPeak }) => toPeak(), "p"),
    act("oom", "Go to the next out-of-memory error", ({ toOom }) => toOom()),
    act("before", "Previous mark", ({ toMark }) => toMark(-1), "["),
    act("after", "Next mark", ({ toMark }) => toMark(1), "]"),
    act("in", "Zoom into the events", ({ zoom }) => zoom(-1), "w"),
    act("out", "Zoom out of the events", ({ zoom }) => zoom(1), "s"),
    act("fit", "Show all events", ({ fit }) => fit(), "f"),
    command(
      "allocations",
      "Show this moment on the Allocations page",
      ({ openAllocations }) => openAllocations(),
    ),
    command("compare", "Compare this moment with another", ({ compare }) => compare()),
    command("clear", "Give up what was chosen", ({ clear }) => clear(), "Escape"),
    ...exportCommands({
      view: "segments",
      subject: "segments",
      formats: ALL_FORMATS,
      source: () => now().source,
      say: (sentence) => now().say(sentence),
    }),
    ...exportCommands({
      view: "segments",
      subject: "lines that keep segments open",
      formats: ["csv", "json"],
      source: () => now().pinners,
      say: (sentence) => now().say(sentence),
    }),
  ];
}
