/** A value with its unit, as the contract names units, as text. */

import type { Unit } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  threeDigits,
  type ByteUnit,
} from "../../base/bytes";
import { formatSeconds } from "../../base/durations";

/** `73.2 GiB`, `412 ms`, `97.1 %`; a missing value reads as an en dash. */
export function formatQuantity(
  value: number | null,
  unit: Unit,
  byteUnit: ByteUnit = "auto",
): string {
  if (value === null || !Number.isFinite(value)) return "–";
  switch (unit) {
    case "bytes":
      return formatBytes(value, byteUnit);
    case "bytes_per_step":
      return `${formatBytes(value, byteUnit)}/step`;
    case "bytes_per_second":
      return `${formatBytes(value, byteUnit)}/s`;
    case "seconds":
      return formatSeconds(value);
    case "count":
      return Number.isInteger(value) ? formatInteger(value) : threeDigits(value);
    case "per_second":
      return `${threeDigits(value)}/s`;
    case "percent":
      return `${threeDigits(value)} %`;
    case "celsius":
      return `${threeDigits(value)} °C`;
    case "watts":
      return `${threeDigits(value)} W`;
  }
}

/** Every digit that was recorded, for tooltips. */
export function formatExact(value: number | null, unit: Unit): string {
  if (value === null || !Number.isFinite(value)) return "not recorded";
  const digits = value.toLocaleString("en-US", { maximumFractionDigits: 9 });
  switch (unit) {
    case "bytes":
      return formatBytesExact(value);
    case "bytes_per_step":
      return `${formatBytesExact(value)} per step`;
    case "bytes_per_second":
      return `${formatBytesExact(value)} per second`;
    case "seconds":
      return `${digits} s`;
    case "count":
      return digits;
    case "per_second":
      return `${digits} per second`;
    case "percent":
      return `${digits} %`;
    case "celsius":
      return `${digits} °C`;
    case "watts":
      return `${digits} W`;
  }
}
