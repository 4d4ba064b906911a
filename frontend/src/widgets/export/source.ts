/** What can be exported, and as which files. Pure. */

import type { Origin } from "../../model/origin";
import type { Table } from "../../model/table";
import { toCsv, toJson } from "./csv";

export interface Figure {
  readonly svg: string;
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface ExportSource {
  readonly origin: Origin;
  /** What it is; names the files together with the run. */
  readonly name: string;
  readonly table: () => Table;
  /** Facts that stand beside the columns in JSON. */
  readonly about: () => Readonly<Record<string, unknown>>;
  /** null where there is nothing to draw, as for tables. */
  readonly figure: (() => Figure) | null;
}

export type ExportFormat = "csv" | "json" | "png" | "svg";

export const TABLE_FORMATS: readonly ExportFormat[] = ["csv", "json"];
export const ALL_FORMATS: readonly ExportFormat[] = ["csv", "json", "png", "svg"];

/** The files' name, without extension. */
export function fileStem({ origin, name }: ExportSource): string {
  return `${origin.run} ${name}${origin.simulated ? " simulated" : ""}`;
}

/** Rows travel without their file's name, so each says it where data are simulated. */
export function exportCsv({ origin, table }: ExportSource): string {
  const { numRows, columns } = table();
  const simulated = { name: "simulated", values: new Uint8Array(numRows).fill(1) };
  return toCsv({
    numRows,
    columns: origin.simulated ? [...columns, simulated] : columns,
  });
}

export function exportJson({ origin, table, about }: ExportSource): string {
  return toJson(table(), { run: origin.run, simulated: origin.simulated, ...about() });
}
