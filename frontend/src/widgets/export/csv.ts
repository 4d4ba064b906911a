/** Tables as CSV (RFC 4180) that a spreadsheet cannot be made to execute. */

import type { Table } from "../../model/table";
import { cellText } from "../../model/table";

/** Text a spreadsheet would run as a formula starts with one of these. */
const FORMULA = /^[=+\-@\t\r]/;

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Text of ours or the user's as a cell; numbers need no guard. */
function textCell(text: string): string {
  return quoted(FORMULA.test(text) ? `'${text}` : text);
}

export function toCsv(table: Table): string {
  const lines = [table.columns.map((column) => textCell(column.name)).join(",")];
  for (let row = 0; row < table.numRows; row += 1) {
    const cells = table.columns.map((column) => {
      const text = cellText(column, row);
      return typeof column.values[row] === "string" ? textCell(text) : text;
    });
    lines.push(cells.join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

/** Columns by name; absent numbers are null. */
export function toJson(table: Table, about: Readonly<Record<string, unknown>>): string {
  const columns = Object.fromEntries(
    table.columns.map(({ name, values }) => [
      name,
      Array.from({ length: table.numRows }, (_, row) => {
        const value = values[row];
        return typeof value === "string" || Number.isFinite(value) ? value : null;
      }),
    ]),
  );
  return `${JSON.stringify({ ...about, columns }, null, 1)}\n`;
}
