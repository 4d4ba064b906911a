/** What the Timeline can do by key, palette and the shell's export menu. */

import type { Command } from "../../base/commands";
import {
  exportAs,
  exportFailure,
  type ExportSource,
} from "../../widgets/export/export_menu";

export function peakCommand(toPeak: () => void): Command {
  return {
    id: "timeline.peak",
    label: "Jump to the peak",
    group: "Timeline",
    key: "p",
    run: toPeak,
  };
}

/** `say` tells the user where a file could not be written. */
export function exportCommands(
  subject: string,
  source: { readonly current: ExportSource | null },
  say: (sentence: string) => void,
): readonly Command[] {
  return (["csv", "json", "png", "svg"] as const).map((format) => ({
    id: `timeline.export.${subject}.${format}`,
    label: `The ${subject} as ${format.toUpperCase()}`,
    group: "Export",
    run: () => {
      if (source.current === null) {
        say(`There is no ${subject} to export yet`);
        return;
      }
      exportAs(format, source.current).catch((error: unknown) => {
        say(exportFailure(error));
      });
    },
  }));
}
