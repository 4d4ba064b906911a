import type { Unit } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatDecimals,
  formatInteger,
  threeDigits,
  type ByteUnit,
} from "../../base/bytes";
import { formatSeconds } from "../../base/durations";

/** After a number: short, and in full. */
export const UNIT_WORDS: Readonly<Record<Unit, readonly [string, string]>> = {
  bytes: ["", ""],
  bytes_per_step: ["/step", " per step"],
  bytes_per_second: ["/s", " per second"],
  seconds: ["", " s"],
  count: ["", ""],
  per_second: ["/s", " per second"],
  percent: [" %", " %"],
  celsius: [" °C", " °C"],
  watts: [" W", " W"],
};

export function isBytes(unit: Unit): boolean {
  return unit.startsWith("bytes");
}

/** `73.2 GiB`, `412 ms`, `97.1 %`; a missing value is an en dash. */
export function formatQuantity(
  value: number | null,
  unit: Unit,
  byteUnit: ByteUnit = "auto",
): string {
  if (value === null || !Number.isFinite(value)) return "–";
  if (unit === "seconds") return formatSeconds(value);
  if (unit === "count" && Number.isInteger(value)) return formatInteger(value);
  // As sentences and reports have it: `9.4 %`.
  if (unit === "percent" && Math.abs(value) >= 0.1 && Math.abs(value) < 10)
    return `${formatDecimals(value, 1)} %`;
  const number = isBytes(unit) ? formatBytes(value, byteUnit) : threeDigits(value);
  return number + UNIT_WORDS[unit][0];
}

/** For tooltips: every recorded digit. */
export function formatExact(value: number | null, unit: Unit): string {
  if (value === null || !Number.isFinite(value)) return "not recorded";
  const number = isBytes(unit)
    ? formatBytesExact(value)
    : value.toLocaleString("en-US", { maximumFractionDigits: 9 });
  return number + UNIT_WORDS[unit][1];
}

/** Always with its sign; zero has none. */
export function formatSigned(
  value: number | null,
  unit: Unit,
  byteUnit: ByteUnit = "auto",
): string {
  const text = formatQuantity(value, unit, byteUnit);
  return value !== null && value > 0 ? `+${text}` : text;
}

export function formatSignedExact(value: number | null, unit: Unit): string {
  const text = formatExact(value, unit);
  return value !== null && value > 0 ? `+${text}` : text;
}
