/** Bytes become text only here; the exact count belongs in tooltips and exports. */

export const BYTE_UNITS = ["auto", "B", "KiB", "MiB", "GiB", "TiB"] as const;

export type ByteUnit = (typeof BYTE_UNITS)[number];

const SCALED_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** The value then has one to four leading digits. */
function exponentOf(bytes: number, unit: ByteUnit): number {
  if (unit !== "auto") return SCALED_UNITS.indexOf(unit);
  let exponent = 0;
  // 1023.5 would print as "1024 KiB": step up where rounding would reach 1024.
  for (let rest = Math.abs(bytes); rest >= 1023.5; rest /= 1024) exponent += 1;
  return Math.min(exponent, SCALED_UNITS.length - 1);
}

// Making a formatter costs 20 times its use, and pictures format at every frame.
const FORMATS = [0, 1, 2, 3, 4, 5, 6].map(
  (digits) =>
    new Intl.NumberFormat("en-US", {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    }),
);

export function formatDecimals(value: number, decimals: number): string {
  const text = FORMATS[decimals]?.format(value) ?? "";
  return text.replace(/^-(?=0(\.0+)?$)/, "").replace(/^-/, "−");
}

/** Never fewer digits than the integer part has: 1.23 12.3 123 1,234. */
export function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  if (size < 0.005) return value.toPrecision(1).replace("e-", "e−").replace(/^-/, "−");
  return formatDecimals(value, decimals);
}

/** `73.2 GiB`; a missing value reads as an en dash. */
export function formatBytes(bytes: number | null, unit: ByteUnit = "auto"): string {
  if (bytes === null || !Number.isFinite(bytes)) return "–";
  const exponent = exponentOf(bytes, unit);
  const name = SCALED_UNITS[exponent] ?? "B";
  if (exponent === 0) return `${formatInteger(Math.round(bytes))} B`;
  return `${threeDigits(bytes / 1024 ** exponent)} ${name}`;
}

/** Powers of two have no decimals: `32 KiB`, not `32.0 KiB`. */
export function sizeName(bytes: number, unit: ByteUnit = "auto"): string {
  return formatBytes(bytes, unit).replace(/\.0+ /, " ");
}

/** `450 – 750 MiB`; one size where both ends agree. */
export function formatByteRange(
  value: number,
  other: number,
  unit: ByteUnit = "auto",
): string {
  if (value === other) return formatBytes(value, unit);
  const { divisor, name } = byteScale(Math.max(Math.abs(value), Math.abs(other)), unit);
  const [low, high] = [Math.min(value, other), Math.max(value, other)];
  return `${threeDigits(low / divisor)} – ${threeDigits(high / divisor)} ${name}`;
}

/** `12.3 %`; says so where the share is too small for two digits. */
export function formatShare(part: number, whole: number): string {
  if (!(whole > 0) || !Number.isFinite(part)) return "–";
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 0.01 ? "<0.01 %" : `${threeDigits(percent)} %`;
}

/** `78,643,200 bytes`, for tooltips. */
export function formatBytesExact(bytes: number | null): string {
  if (bytes === null || !Number.isFinite(bytes)) return "not recorded";
  return counted(Math.round(bytes), "byte");
}

/** `1 block`, `412 blocks`. */
export function counted(count: number, noun: string): string {
  // eslint-disable-next-line memboard/counted-nouns
  return `${formatInteger(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function formatInteger(value: number): string {
  return formatDecimals(value, 0);
}

/** One unit for all ticks of an axis: its exponent and name. */
export function byteScale(
  largest: number,
  unit: ByteUnit = "auto",
): { readonly divisor: number; readonly name: string } {
  const exponent = exponentOf(largest, unit);
  return { divisor: 1024 ** exponent, name: SCALED_UNITS[exponent] ?? "B" };
}
