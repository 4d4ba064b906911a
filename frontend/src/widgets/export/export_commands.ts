/** Exports by key, palette and the shell's export menu. */

import type { Command } from "../../base/commands";
import { exportAs, exportFailure } from "./export_menu";
import type { ExportFormat, ExportSource } from "./source";

export interface ExportChoice {
  /** The view's word. */
  readonly view: string;
  /** What is exported, as the menu says it: "chart", "table of ranks". */
  readonly subject: string;
  readonly formats: readonly ExportFormat[];
  /** Asked when the user exports, so the file holds what is on the page then. */
  readonly source: () => ExportSource | null;
  /** Tells the user why there is no file. */
  readonly say: (sentence: string) => void;
}

export function exportCommands(choice: ExportChoice): readonly Command[] {
  const { view, subject, say } = choice;
  return choice.formats.map((format) => ({
    id: `${view}.export.${subject.replaceAll(" ", "_")}.${format}`,
    label: `The ${subject} as ${format.toUpperCase()}`,
    group: "Export",
    run: () => {
      const source = choice.source();
      if (source === null) {
        say(`There is no ${subject} to export yet`);
        return;
      }
      exportAs(format, source).catch((error: unknown) => say(exportFailure(error)));
    },
  }));
}
