/** Columns of a `RowTable` in one call each: what most of them have in common. Pure. */

import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import type { Table, TableColumn } from "../../model/table";
import type { RowCell, RowColumn } from "./row_table";

/** What a file has of the columns, in the order of the rows. */
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

/** A column of numbers, sorted by them. `hint`: what it is, and how it is reckoned. */
export function numberColumn(
  key: string,
  title: string,
  width: string,
  values: ArrayLike<number>,
  cell: (value: number, row: number) => RowCell,
  hint?: string,
): RowColumn {
  return {
    ...{ key, title, width, numeric: true, values },
    cell: (row) => cell(values[row] ?? NaN, row),
    ...(hint === undefined ? {} : { hint }),
  };
}

/** A column of texts, sorted by them; `cell` says more than the text itself. */
export function textColumn(
  key: string,
  title: string,
  width: string,
  values: readonly string[],
  hint?: string,
  cell: (text: string, row: number) => RowCell = (text) => ({ text }),
): RowColumn {
  return {
    ...{ key, title, width, numeric: false, values },
    cell: (row) => cell(values[row] ?? "", row),
    ...(hint === undefined ? {} : { hint }),
  };
}

/** A column of bytes, each with a bar, the longest for the most. */
export function bytesColumn(
  key: string,
  title: string,
  width: string,
  values: ArrayLike<number>,
  unit: ByteUnit,
  of: {
    readonly colourOf: (row: number) => string;
    readonly hint?: string;
    /** Of how much the bar is as wide as the cell; the most where absent. */
    readonly longest?: number;
    /** Said after every digit. */
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

/** Down to the nanosecond, which is what traces hold. */
const EXACT = { maximumFractionDigits: 6 } as const;

/** A time in a unit that fits; every digit where it is pointed at. */
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

/** What was not recorded, and why. */
export function absentCell(why: string): RowCell {
  return { text: "–", title: why };
}

/** The largest of a column, as the length of its bars; 0 of nothing. */
export function longestOf(values: Iterable<number>): number {
  let longest = 0;
  for (const value of values) {
    const size = Math.abs(value);
    if (size > longest) longest = size;
  }
  return longest;
}

/** A length of `longest` as a share of the cell; none where all are 0. */
export function barOf(
  value: number,
  longest: number,
  colour: string,
): NonNullable<RowCell["bar"]> {
  return { share: longest > 0 ? value / longest : 0, colour };
}

/** A change as a bar from the middle of the cell, in the colour of less or of more. */
export function changeBar(
  value: number,
  longest: number,
  [less, more]: readonly [string, string],
): NonNullable<RowCell["bar"]> {
  const share = longest > 0 ? Math.abs(value) / longest / 2 : 0;
  return value < 0
    ? { share, from: 0.5 - share, colour: less }
    : { share, from: 0.5, colour: more };
}
