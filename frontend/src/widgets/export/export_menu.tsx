/** The export button of a chart: CSV, JSON, PNG and SVG of what is shown. */

import { useState } from "preact/hooks";
import type { Commands } from "../../base/commands";
import { useCommands } from "../../base/use_commands";
import { Icon } from "../icon/icon";
import { Menu } from "../menu/menu";
import { downloadBlob, downloadText, pngOf } from "./download";
import {
  ALL_FORMATS,
  exportCsv,
  exportJson,
  fileStem,
  TABLE_FORMATS,
  type ExportFormat,
  type ExportSource,
} from "./source";

const LABELS: Readonly<Record<ExportFormat, string>> = {
  csv: "CSV: the data shown",
  json: "JSON: the data shown",
  png: "PNG picture",
  svg: "SVG picture",
};

/** Twice the screen's size: sharp on paper and on dense screens. */
const PNG_SCALE = 2;

export async function exportAs(
  format: ExportFormat,
  source: ExportSource,
): Promise<void> {
  const stem = fileStem(source);
  const { figure = null } = source;
  if (format === "csv") downloadText(stem, "csv", exportCsv(source));
  else if (format === "json") downloadText(stem, "json", exportJson(source));
  else if (figure !== null) {
    const { svg, widthPx, heightPx } = figure();
    if (format === "svg") downloadText(stem, "svg", svg);
    else downloadBlob(stem, "png", await pngOf(svg, widthPx, heightPx, PNG_SCALE));
  }
}

/** What to tell the user where a file could not be made. */
export function exportFailure(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return `The export failed: ${why}`;
}

export function ExportMenu({
  source,
  subject,
  shell,
}: {
  readonly source: ExportSource;
  /** What is exported, for the button's label: "the heatmap". */
  readonly subject: string;
  /** Where it can be exported by key, palette and the shell's export menu as well. */
  readonly shell?: {
    readonly commands: Commands;
    readonly say: (sentence: string) => void;
  };
}) {
  const [failure, setFailure] = useState<string | null>(null);
  const formats = (source.figure ?? null) === null ? TABLE_FORMATS : ALL_FORMATS;
  useCommands(shell?.commands, () =>
    formats.map((format) => ({
      id: `export.${subject.replaceAll(" ", "_")}.${format}`,
      label: `T${subject.slice(1)} as ${format.toUpperCase()}`,
      group: "Export",
      run: () => {
        exportAs(format, source).catch((error: unknown) =>
          shell?.say(exportFailure(error)),
        );
      },
    })),
  );
  return (
    <>
      {failure !== null && (
        <span role="alert" class="quiet">
          {failure}
        </span>
      )}
      <Menu
        label={`Export ${subject}`}
        empty="Nothing to export."
        items={formats.map((format) => ({
          id: format,
          label: LABELS[format],
          run: () => {
            setFailure(null);
            exportAs(format, source).catch((error: unknown) =>
              setFailure(exportFailure(error)),
            );
          },
        }))}
      >
        <Icon name="download" />
      </Menu>
    </>
  );
}
