/** The export button of a chart: CSV, JSON, PNG and SVG of what is shown. */

import { useState } from "preact/hooks";
import type { Table } from "../../model/table";
import { Icon } from "../icon/icon";
import { Menu } from "../menu/menu";
import { toCsv, toJson } from "./csv";
import { downloadBlob, downloadText, pngOf } from "./download";

export interface Figure {
  readonly svg: string;
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface ExportSource {
  /** Name of the files, without extension. */
  readonly stem: string;
  readonly table: () => Table;
  /** Facts that stand beside the columns in JSON. */
  readonly about: () => Readonly<Record<string, unknown>>;
  /** null where there is nothing to draw, as for tables. */
  readonly figure: (() => Figure) | null;
}

export type ExportFormat = "csv" | "json" | "png" | "svg";

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
  if (format === "csv") {
    downloadText(source.stem, "csv", toCsv(source.table()));
  } else if (format === "json") {
    downloadText(source.stem, "json", toJson(source.table(), source.about()));
  } else if (source.figure !== null) {
    const { svg, widthPx, heightPx } = source.figure();
    if (format === "svg") downloadText(source.stem, "svg", svg);
    else {
      const png = await pngOf(svg, widthPx, heightPx, PNG_SCALE);
      downloadBlob(source.stem, "png", png);
    }
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
}: {
  readonly source: ExportSource;
  /** What is exported, for the button's label: "the heatmap". */
  readonly subject: string;
}) {
  const [failure, setFailure] = useState<string | null>(null);
  const formats: readonly ExportFormat[] =
    source.figure === null ? ["csv", "json"] : ["csv", "json", "png", "svg"];
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
            exportAs(format, source).catch((error: unknown) => {
              setFailure(exportFailure(error));
            });
          },
        }))}
      >
        <Icon name="download" />
      </Menu>
    </>
  );
}
