import { cellText, type Table } from "../../model/table";
import { unrealWord, type Origin } from "../../model/words/origin";

export interface Figure {
  readonly svg: string;
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface ExportSource {
  readonly origin: Origin;
  readonly name: string;
  readonly table: () => Table;
  readonly about: () => Readonly<Record<string, unknown>>;
  /** null: nothing to draw, as for tables. */
  readonly figure?: (() => Figure) | null;
}

/** Without extension. */
export function fileStem({ origin, name }: ExportSource): string {
  const { run, unreal } = origin;
  return `${run} ${name}${unreal === null ? "" : ` ${unrealWord(unreal)}`}`;
}

/** Rows may be copied out of the file, so each is marked where data are not real. */
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

/** Spreadsheets run text that begins with one of these as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function textCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** RFC 4180, without cells that a spreadsheet would run. */
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
