/** The export button of a chart or table: CSV, JSON, PNG and SVG of what is shown. */

import { useState } from "preact/hooks";
import { useCommands, type Commands } from "../../base/commands";
import { Icon } from "../icon/icon";
import { Menu } from "../menu/menu";
import { downloadBlob, downloadText, pngOf } from "./download";
import { exportCsv, exportJson, fileStem, type ExportSource } from "./source";

const LABELS = {
  csv: "CSV: the data shown",
  json: "JSON: the data shown",
  png: "PNG picture",
  svg: "SVG picture",
} as const;

type ExportFormat = keyof typeof LABELS;

/** Twice the screen's size: sharp on paper and on dense screens. */
const PNG_SCALE = 2;

/** Where exports are commands, too: by key, palette and the shell's export menu. */
export interface ExportShell {
  readonly commands: Commands;
  /** Tells the user why there is no file. */
  readonly say: (sentence: string) => void;
}

function formatsOf({ figure = null }: ExportSource): readonly ExportFormat[] {
  return figure === null ? ["csv", "json"] : ["csv", "json", "png", "svg"];
}

async function written(format: ExportFormat, source: ExportSource): Promise<void> {
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

function exportAs(
  format: ExportFormat,
  source: ExportSource,
  say: (sentence: string) => void,
): void {
  written(format, source).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    say(`The export failed: ${why}`);
  });
}

/** `subject` is what is exported: "the heatmap"; null: there is nothing yet. */
export function useExports(
  shell: ExportShell | undefined,
  subject: string,
  source: ExportSource | null,
): void {
  const formats = source === null ? [] : formatsOf(source);
  useCommands(
    shell?.commands,
    () =>
      formats.map((format) => ({
        id: `export.${subject.replaceAll(" ", "_")}.${format}`,
        label: `${subject.slice(0, 1).toUpperCase()}${subject.slice(1)} as ${format.toUpperCase()}`,
        group: "Export",
        run: () => {
          if (source !== null && shell !== undefined)
            exportAs(format, source, shell.say);
        },
      })),
    [subject, formats.length],
  );
}

export function ExportMenu({
  source,
  subject,
  shell,
}: {
  readonly source: ExportSource;
  readonly subject: string;
  readonly shell?: ExportShell | undefined;
}) {
  const [failure, setFailure] = useState<string | null>(null);
  useExports(shell, subject, source);
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
        items={formatsOf(source).map((format) => ({
          id: format,
          label: LABELS[format],
          run: () => {
            setFailure(null);
            exportAs(format, source, setFailure);
          },
        }))}
      >
        <Icon name="download" />
      </Menu>
    </>
  );
}
