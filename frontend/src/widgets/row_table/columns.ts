import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import type { Table, TableColumn } from "../../model/table";
import type { RowCell, RowColumn } from "./row_table";

/** Exported columns, in the order of `rows`. */
export function tableOf(
  columns: readonly Pick<RowColumn, "key" | "values" | "exported">[],
  rows: ArrayLike<number>,
): Table {
  const order = Array.from(rows);
  const sent = columns.flatMap(({ key, values, exported }) => {
    if (exported !== undefined) return exported ?? [];
    return values === undefined ? [] : { name: key, values };
  });
  return {
    numRows: order.length,
    columns: sent.map(({ name, values }) => ({
      name,
      values: isTexts(values)
        ? order.map((row) => values[row] ?? "")
        : Float64Array.from(order, (row) => values[row] ?? NaN),
    })),
  };
}

function isTexts(values: TableColumn["values"]): values is readonly string[] {
  return typeof values[0] === "string";
}

/** `hint`: its meaning, and how it is computed. */
export function numberColumn(
  key: string,
  title: string,
  width: string,
  values: ArrayLike<number>,
  cell: (value: number, row: number) => RowCell,
  hint?: string,
): RowColumn {
  return {
    key,
    title,
    width,
    numeric: true,
    values,
    cell: (row) => cell(values[row] ?? NaN, row),
    ...(hint === undefined ? {} : { hint }),
  };
}

export function textColumn(
  key: string,
  title: string,
  width: string,
  values: readonly string[],
  hint?: string,
  cell: (text: string, row: number) => RowCell = (text) => ({ text }),
): RowColumn {
  return {
    key,
    title,
    width,
    numeric: false,
    values,
    cell: (row) => cell(values[row] ?? "", row),
    ...(hint === undefined ? {} : { hint }),
  };
}

export function bytesColumn(
  key: string,
  title: string,
  width: string,
  values: ArrayLike<number>,
  unit: ByteUnit,
  of: {
    readonly colourOf: (row: number) => string;
    readonly hint?: string;
    /** Bytes of a bar as wide as the cell; default: the largest value. */
    readonly longest?: number;
    readonly more?: (row: number) => string;
  },
): RowColumn {
  const { colourOf, hint, longest = longestOf(Array.from(values)), more } = of;
  const cell = (bytes: number, row: number): RowCell => ({
    text: formatBytes(bytes, unit),
    title: [formatBytesExact(bytes), more?.(row) ?? ""].filter(Boolean).join(", "),
    bar: barOf(bytes, longest, colourOf(row)),
  });
  return numberColumn(key, title, width, values, cell, hint);
}

/** Nanoseconds, as in traces. */
const EXACT = { maximumFractionDigits: 6 } as const;

export function durationCell(ms: number): RowCell {
  return {
    text: formatSeconds(ms / 1e3),
    title: `${ms.toLocaleString("en-US", EXACT)} ms`,
  };
}

export function countCell(count: number): RowCell {
  return { text: formatInteger(count) };
}

export function bytesCell(bytes: number | null, unit: ByteUnit): RowCell {
  return { text: formatBytes(bytes, unit), title: formatBytesExact(bytes) };
}

export function absentCell(why: string): RowCell {
  return { text: "–", title: why };
}

/** Largest absolute value; 0 without values. */
export function longestOf(values: Iterable<number>): number {
  let longest = 0;
  for (const value of values) {
    const size = Math.abs(value);
    if (size > longest) longest = size;
  }
  return longest;
}

export function barOf(
  value: number,
  longest: number,
  colour: string,
): NonNullable<RowCell["bar"]> {
  return { share: longest > 0 ? value / longest : 0, colour };
}

export function changeBar(
  value: number,
  longest: number,
  [less, more]: readonly [string, string],
): NonNullable<RowCell["bar"]> {
  const share = longest > 0 ? Math.min(1, Math.abs(value) / longest) / 2 : 0;
  return value < 0
    ? { share, from: 0.5 - share, colour: less }
    : { share, from: 0.5, colour: more };
}
