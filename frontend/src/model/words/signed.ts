/** Differences as text: the sign always stands, and zero has none. */

import type { Unit } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { formatExact, formatQuantity } from "./quantity";

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
