/** What the Segments page can do by key, palette and the shell's export menu. */

import { commandsOf, type Command } from "../../../base/commands";
import { exportCommands } from "../../../widgets/export/export_commands";
import {
  ALL_FORMATS,
  TABLE_FORMATS,
  type ExportFormat,
  type ExportSource,
} from "../../../widgets/export/source";
import type { TransportActions } from "./transport";

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

export function segmentCommands(now: SegmentsNow): readonly Command[] {
  const { step, toPeak, toOom, toMark, zoom, fit } = now.actions;
  const exporting = (
    subject: string,
    formats: readonly ExportFormat[],
    source: ExportSource | null,
  ) =>
    exportCommands({
      view: "segments",
      subject,
      formats,
      source: () => source,
      say: now.say,
    });
  return [
    ...commandsOf("segments", "Segments", [
      ["play", "Play or pause", now.play, " "],
      ["earlier", "One event back", () => step(-1), "ArrowLeft"],
      ["later", "One event on", () => step(1), "ArrowRight"],
      ["much-earlier", "Ten events back", () => step(-10), "Shift+ArrowLeft"],
      ["much-later", "Ten events on", () => step(10), "Shift+ArrowRight"],
      ["peak", "Go to the peak of reserved memory", toPeak, "p"],
      ["oom", "Go to the next out-of-memory error", toOom],
      ["before", "Previous mark", () => toMark(-1), "["],
      ["after", "Next mark", () => toMark(1), "]"],
      ["in", "Zoom into the events", () => zoom(-1), "w"],
      ["out", "Zoom out of the events", () => zoom(1), "s"],
      ["fit", "Show all events", fit, "f"],
      ["blocks", "Show this moment in Blocks", now.openAllocations],
      ["compare", "Compare this moment with another", now.compare],
      ["clear", "Give up what was chosen", now.clear, "Escape"],
    ]),
    ...exporting("segments", ALL_FORMATS, now.source),
    ...exporting("lines that keep segments open", TABLE_FORMATS, now.pinners),
  ];
}
