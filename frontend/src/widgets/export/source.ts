/** What can be exported, and as which files. Pure. */

import { cellText, type Table } from "../../model/table";
import { unrealWord, type Origin } from "../../model/words/origin";

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
  /** Absent or null where there is nothing to draw, as for tables. */
  readonly figure?: (() => Figure) | null;
}

/** The files' name, without extension. */
export function fileStem({ origin, name }: ExportSource): string {
  const { run, unreal } = origin;
  return `${run} ${name}${unreal === null ? "" : ` ${unrealWord(unreal)}`}`;
}

/** Rows travel without their file's name, so each says it where data are not real. */
export function exportCsv({ origin, table }: ExportSource): string {
  const { numRows, columns } = table();
  if (origin.unreal === null) return toCsv({ numRows, columns });
  const name = unrealWord(origin.unreal);
  const unreal = { name, values: new Uint8Array(numRows).fill(1) };
  return toCsv({ numRows, columns: [...columns, unreal] });
}

/** Columns by name; absent numbers are null. */
export function exportJson({ origin, table, about }: ExportSource): string {
  const { numRows, columns } = table();
  const written = columns.map(({ name, values }) => {
    const cells = Array.from({ length: numRows }, (_, row) => values[row] ?? null);
    return [name, cells] as const;
  });
  const facts = {
    run: origin.run,
    simulated: origin.unreal === "simulated data",
    virtual_gpu: origin.unreal === "virtual GPU",
    ...about(),
    columns: Object.fromEntries(written),
  };
  return `${JSON.stringify(facts, null, 1)}\n`;
}

/** A spreadsheet would run text that begins with one of these as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** Text of ours or the user's as a cell; numbers need no guard. */
function textCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** RFC 4180, and nothing that a spreadsheet can be made to execute. */
export function toCsv({ numRows, columns }: Table): string {
  const lines = [columns.map(({ name }) => textCell(name)).join(",")];
  for (let row = 0; row < numRows; row += 1) {
    const cells = columns.map((column) => {
      const text = cellText(column, row);
      return typeof column.values[row] === "string" ? textCell(text) : text;
    });
    lines.push(cells.join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}
