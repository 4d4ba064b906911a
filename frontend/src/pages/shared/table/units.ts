/** How a table writes a number of each unit. */

import type { ColumnUnit, Unit } from "../../../api/types.gen";
import {
  formatBytes,
  formatInteger,
  sizeName,
  threeDigits,
  type ByteUnit,
} from "../../../base/bytes";
import { formatInstant } from "../../../base/durations";
import {
  formatQuantity,
  formatSigned,
  formatSignedExact,
} from "../../../model/words/quantity";
import {
  bytesCell,
  durationCell,
  type RowCell,
} from "../../../widgets/row_table/columns";

const TEXT_UNITS = ["text", "name", "category", "problem", "stack"] as const;

export type NumberUnit = Exclude<
  ColumnUnit,
  (typeof TEXT_UNITS)[number] | "of_row" | "change_of_row"
>;
type Cells = (value: number, unit: ByteUnit) => RowCell;

function signedCell(of: Unit): Cells {
  return (value, unit) => ({
    text: formatSigned(value, of, unit),
    title: formatSignedExact(value, of),
  });
}

/** Above this a change is shown as a factor, */
const MANY_TIMES = 10;
/** and above this not at all: the values say more. */
const MOST_TIMES = 100;

/** Of a share of what it was; infinite where one side alone has it. */
export function changeText(share: number): string {
  if (!Number.isFinite(share)) return share > 0 ? "new" : "gone";
  if (share >= MOST_TIMES) return "";
  if (share >= MANY_TIMES) return `${threeDigits(1 + share)} ×`;
  return `${share > 0 ? "+" : ""}${threeDigits(100 * share)} %`;
}

export const CELLS: Readonly<Record<NumberUnit, Cells>> = {
  count: (value) => ({ text: formatQuantity(value, "count") }),
  rank: (rank) => ({ text: String(rank) }),
  ms: durationCell,
  us: (us) => durationCell(us / 1e3),
  seconds: (seconds) => durationCell(seconds * 1e3),
  excess_seconds: signedCell("seconds"),
  instant: (epochMs) => ({ text: formatInstant(epochMs) }),
  bytes: bytesCell,
  size_class: (from, unit) => ({
    text: `${sizeName(from, unit)} to ${sizeName(2 * from, unit)}`,
  }),
  change: signedCell("count"),
  change_bytes: signedCell("bytes"),
  change_share: (share) => ({ text: changeText(share), title: `${100 * share} %` }),
  bytes_per_second: (value, unit) => ({
    text: `${formatBytes(value, unit)}/s`,
    title: `${value} bytes/s`,
  }),
  share: (share) => ({
    text: `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`,
    title: `${100 * share} %`,
  }),
  ratio: (value) => ({ text: value.toFixed(2), title: String(value) }),
  flops: (flops) => ({
    text: formatFlops(flops),
    title: flops.toLocaleString("en-US"),
  }),
  yes: (value) => ({ text: value === 1 ? "yes" : "no" }),
  errors: (num) => {
    const count = formatInteger(num);
    return num > 0 ? { text: `✖ ${count}`, tone: "bad" } : { text: count };
  },
};

/** Of the change of what has this unit. */
export const CHANGES: Readonly<Partial<Record<ColumnUnit, NumberUnit>>> = {
  bytes: "change_bytes",
  seconds: "excess_seconds",
};

/** `738 M`. */
export function formatFlops(flops: number): string {
  const power = flops < 999.5 ? 0 : Math.floor(Math.log10(flops * 1.0005) / 3);
  return `${threeDigits(flops / 1000 ** power)} ${"KMGTPE".charAt(power - 1)}`.trim();
}

export function isTextUnit(unit: ColumnUnit): boolean {
  return TEXT_UNITS.some((textUnit) => textUnit === unit);
}
