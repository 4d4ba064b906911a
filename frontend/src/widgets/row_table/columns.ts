import type { ComponentChildren } from "preact";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import type { Table, TableColumn } from "../../model/table";

export interface RowCell {
  readonly text: string;
  /** End of the text that stays visible: the middle is cut. */
  readonly tail?: string;
  /** Tooltip: every digit, or the whole text. */
  readonly title?: string;
  /** "#rrggbb" before the text. */
  readonly swatch?: string;
  /** Below the number: share of the cell, start and colour. */
  readonly bar?: {
    readonly share: number;
    readonly from?: number;
    readonly colour: string;
  };
  /** After the text, fainter. */
  readonly note?: string;
  readonly tone?: "quiet" | "warn" | "bad" | "link";
  /** The cause of a finding. */
  readonly isCause?: boolean;
  /** Replaces the text. */
  readonly content?: ComponentChildren;
}

export interface RowColumn {
  /** Name in the URL, in files and in sort requests. */
  readonly key: string;
  /** May have several lines. */
  readonly title: string;
  /** Tooltip of the heading: its meaning, and how it is computed. */
  readonly hint?: string;
  /** "#rrggbb" beside the heading. */
  readonly swatch?: string;
  readonly numeric: boolean;
  /** CSS grid width: "96px", "minmax(160px, 1fr)". */
  readonly width: string;
  /** Also where columns get narrower to fit. */
  readonly keepsWidth?: boolean;
  /** For sorting and exports; see `tableOf`. */
  readonly values?: ArrayLike<number> | readonly string[];
  /** Exported column with its unit; default: key and values; null: none. */
  readonly exported?: TableColumn | null;
  /** true: the owner sorts, without values; false: not sortable despite values. */
  readonly sortable?: boolean;
  /** The first click sorts ascending, as for texts. */
  readonly ascends?: boolean;
  /** Indented, with a button that opens a row. */
  readonly isTree?: boolean;
  readonly cell: (row: number) => RowCell;
}

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

/** Nanoseconds, as in traces. */
const EXACT = { maximumFractionDigits: 6 } as const;

export function durationCell(ms: number): RowCell {
  return {
    text: formatSeconds(ms / 1e3),
    title: `${ms.toLocaleString("en-US", EXACT)} ms`,
  };
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
