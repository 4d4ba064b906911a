/** What the Trace page says: times, values and sentences. Pure. */

import type { TraceResponse, TraceTrack } from "../../../api/types.gen";
import {
  formatBytes,
  formatInteger,
  threeDigits,
  type ByteUnit,
} from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";

/** `812 ns`, `1.24 µs`, `3.70 ms`. */
export function formatNs(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  if (ns === 0) return "0 ns";
  if (Math.abs(ns) < 999.5) return `${Math.round(ns)} ns`;
  return formatSeconds(ns / 1e9);
}

/** Every nanosecond: `1,234,567 ns`. */
export function formatNsExact(ns: number): string {
  return `${formatInteger(Math.round(ns))} ns`;
}

/**
 * A place on the axis, as fine as its ticks: `1.2345 s`, `12.345 ms`; `besideNs`: in the
 * unit of other ticks than that fine ones.
 */
export function formatTick(ns: number, stepNs: number, besideNs = stepNs): string {
  const [unit, scale] =
    besideNs >= 1e8
      ? (["s", 1e9] as const)
      : besideNs >= 1e5
        ? (["ms", 1e6] as const)
        : besideNs >= 1e2
          ? (["µs", 1e3] as const)
          : (["ns", 1] as const);
  const digits = Math.max(0, Math.ceil(-Math.log10(stepNs / scale) - 1e-9));
  const text = (ns / scale).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${text.replace("-", "−")} ${unit}`;
}

export function counterValue(
  value: number | null,
  track: Pick<TraceTrack, "unit">,
  byteUnit: ByteUnit,
): string {
  if (value === null || !Number.isFinite(value)) return "not recorded";
  switch (track.unit) {
    case "bytes":
      return formatBytes(value, byteUnit);
    case "bytes_per_second":
      return `${formatBytes(value, byteUnit)}/s`;
    case "percent":
      return `${threeDigits(value)} %`;
    case "celsius":
      return `${threeDigits(value)} °C`;
    case "watts":
      return `${threeDigits(value)} W`;
    case "bytes_per_step":
    case "per_second":
    case "seconds":
    case "count":
    case null:
      return Number.isInteger(value) ? formatInteger(value) : threeDigits(value);
  }
}

function counted(count: number, what: string): string {
  return `${formatInteger(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** The picture in one sentence. */
export function summarySentence(answer: TraceResponse): string {
  const slices = answer.tracks.reduce((sum, { numSlices }) => sum + numSlices, 0);
  const counters = answer.tracks.filter(({ kind }) => kind === "counter").length;
  const ranks = answer.shownRanks.length;
  const tracks = answer.tracks.length - counters;
  const instants = answer.tracks.reduce((sum, one) => sum + one.numInstants, 0);
  const parts = [
    `${counted(slices, "slice")} on ${counted(tracks, "track")}`,
    ...(instants > 0 ? [counted(instants, "instant")] : []),
    ...(counters > 0 ? [counted(counters, "counter")] : []),
    ...(answer.numRanks > 0 ? [`${ranks} of ${counted(answer.numRanks, "rank")}`] : []),
    `${formatNs(answer.endNs)} long`,
  ];
  const steps = answer.steps.number.length;
  if (steps > 0) parts.push(counted(steps, "step"));
  return `${parts.join(", ")}.`;
}

/** Which moment is shown first: `opened at step 12, the slowest traced (rank 3)`. */
export function focusWords(focus: TraceResponse["focus"]): string {
  if (focus?.step === null || focus === null) return "";
  const of = { asked: "", all: "", first: ", the first traced" };
  const why =
    focus.why === "slowest"
      ? `, the slowest traced${focus.rank === null ? "" : ` (rank ${focus.rank})`}`
      : of[focus.why];
  return `opened at step ${formatInteger(focus.step)}${why}`;
}

/** `3 of 1,204`. */
export function hitWords(at: number | null, numHits: number): string {
  if (numHits === 0) return "nothing found";
  const all = formatInteger(numHits);
  return at === null ? `${all} found` : `${formatInteger(at + 1)} of ${all}`;
}
