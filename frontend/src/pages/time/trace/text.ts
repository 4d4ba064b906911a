import type { TraceFamily } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { sentenceCase } from "../../../model/words/sentence_case";

const FAMILY_WORDS: Partial<Record<TraceFamily, string>> = {
  memory: "Copy or fill",
  runtime: "Device runtime",
  oom: "Out of memory",
};

export function familyWords(family: TraceFamily): string {
  return FAMILY_WORDS[family] ?? sentenceCase(family);
}

/** `812 ns`, `1.24 µs`, `3.70 ms`. */
export function formatNs(ns: number): string {
  if (ns === 0) return "0 ns";
  return Math.abs(ns) < 999.5 ? `${Math.round(ns)} ns` : formatSeconds(ns / 1e9);
}

/** Every nanosecond: `1,234,567 ns`. */
export function formatNsExact(ns: number): string {
  return `${formatInteger(Math.round(ns))} ns`;
}

const TICK_UNITS = [
  [1e8, "s", 1e9],
  [1e5, "ms", 1e6],
  [1e2, "µs", 1e3],
  [0, "ns", 1],
] as const;

/**
 * As fine as its ticks: `1.2345 s`, `12.345 ms`; `besideNs`: the spacing of ticks whose
 * unit it takes.
 */
export function formatTick(ns: number, stepNs: number, besideNs = stepNs): string {
  const [, unit, scale] =
    TICK_UNITS.find(([least]) => besideNs >= least) ?? TICK_UNITS[3];
  const digits = Math.max(0, Math.ceil(-Math.log10(stepNs / scale) - 1e-9));
  const text = (ns / scale).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${text.replace("-", "−")} ${unit}`;
}
