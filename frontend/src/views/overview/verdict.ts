/**
 * The first sentence of the page: the most serious thing the strip knows. It only puts
 * the server's findings into words; what counts as an outlier is decided there.
 */

import type { RankEnding, RankEndings, RankStrip } from "../../api/types.gen";
import {
  formatBytes,
  formatInteger,
  threeDigits,
  type ByteUnit,
} from "../../base/bytes";
import { formatRankSet } from "../../base/rank_set";
import { highestRank } from "../../model/rank_notes";

export interface Verdict {
  readonly tone: "bad" | "warn" | "ok" | "quiet";
  readonly word: string;
  readonly sentence: string;
  /** The rank to look at first. */
  readonly rank: number | null;
}

/** Ranks named in full before "and 12 more". */
const MAX_NAMED = 6;

/** The verdict over all ranks, or over one. */
export function verdict(
  strip: RankStrip,
  rank: number | null,
  byteUnit: ByteUnit,
  endings: RankEndings,
): Verdict {
  const chosen = rank === null ? null : strip.rank.indexOf(rank);
  if (chosen !== null) {
    return chosen < 0
      ? nothing("This rank is not in the run.")
      : oneRank(strip, chosen, byteUnit, endings);
  }
  const unread = unreadSentence(strip);
  const oom = ranksWhere(strip, (i) => (strip.numOoms[i] ?? 0) > 0);
  const [firstOom] = oom;
  if (firstOom !== undefined) {
    const [worst] = [...oom].sort((a, b) => peakOf(strip, b) - peakOf(strip, a));
    const known =
      worst === undefined ? "" : oomFacts(strip, oom.length, worst, byteUnit);
    const facts = unread === "" ? known : ` ${unread}`;
    const sentence = `${nameRanks(oom, strip)} ran out of memory${others(oom, strip)}.${facts}`;
    return { tone: "bad", word: "OOM", sentence, rank: worst ?? firstOom };
  }
  const [firstEnded] = endings.ranks;
  if (firstEnded !== undefined) {
    const peaks = outlierSentence(strip, byteUnit) ?? peakSentence(strip, byteUnit);
    const sentence = `${endings.sentence} ${peaks}`.trimEnd();
    return { ...endedLook(firstEnded), sentence, rank: firstEnded.rank };
  }
  if (unread !== "") return nothing(unread);
  const lost = ranksWhere(strip, (i) => strip.lost[i] === 1);
  const [firstLost] = lost;
  if (firstLost !== undefined) {
    const sentence =
      `Nothing of ${nameRanks(lost, strip).replace(/^R/, "r").replace(/^A/, "a")} could be read. ` +
      (outlierSentence(strip, byteUnit) ?? peakSentence(strip, byteUnit));
    return { tone: "bad", word: "Lost", sentence, rank: firstLost };
  }
  const outliers = outlierSentence(strip, byteUnit);
  if (outliers !== null) {
    const [worst = null] = strip.outliers;
    return { tone: "warn", word: "Uneven", sentence: outliers, rank: worst };
  }
  const highest = highestRank(strip);
  if (highest === null) return nothing("No rank has recorded its memory yet.");
  const even = strip.rank.length > 1 ? " No rank stands out." : "";
  const word = calmWord(strip, strip.rank.indexOf(highest));
  return {
    tone: word === NO_OOM ? "ok" : "quiet",
    word,
    sentence: peakSentence(strip, byteUnit) + even,
    rank: highest,
  };
}

/** What is said of all ranks may change until all are read; empty: they are. */
function unreadSentence({ numUnread, rank }: RankStrip): string {
  if (numUnread === 0) return "";
  const all = formatInteger(rank.length);
  return `${formatInteger(numUnread)} of ${all} ranks are still being read.`;
}

function nothing(sentence: string): Verdict {
  return { tone: "quiet", word: "No data", sentence, rank: null };
}

/** Word and tone of an end that was not in order. */
function endedLook({ how, message }: RankEnding): Pick<Verdict, "tone" | "word"> {
  if (how === "lost") return { tone: "bad", word: "Lost" };
  if (how === "signal") return { tone: "warn", word: message };
  return message.startsWith("KeyboardInterrupt")
    ? { tone: "warn", word: "Interrupted" }
    : { tone: "bad", word: "Exception" };
}

function oneRank(
  strip: RankStrip,
  i: number,
  byteUnit: ByteUnit,
  endings: RankEndings,
): Verdict {
  const rank = strip.rank[i] ?? null;
  const facts = `Its peak is ${peakWords(strip, i, byteUnit)}${versusMedian(strip, i, byteUnit)}.`;
  const ooms = strip.numOoms[i] ?? 0;
  if (ooms > 0) {
    const times = ooms === 1 ? "once" : `${formatInteger(ooms)} times`;
    const sentence = `Rank ${rank ?? ""} ran out of memory ${times}. ${facts}`;
    return { tone: "bad", word: "OOM", sentence, rank };
  }
  const ended = endings.ranks.find((one) => one.rank === rank);
  if (ended !== undefined)
    return { ...endedLook(ended), sentence: `${ended.sentence} ${facts}`, rank };
  if (strip.lost[i] === 1) {
    const sentence = `Nothing of rank ${rank ?? ""} could be read. ${facts}`;
    return { tone: "bad", word: "Lost", sentence, rank };
  }
  const stands = rank !== null && strip.outliers.includes(rank);
  const calm = calmWord(strip, i);
  const sentence = stands
    ? `Rank ${rank} is far above the others. ${facts}`
    : calm === NO_OOM
      ? `Rank ${rank ?? ""} never ran out of memory. ${facts}`
      : facts.replace(/^Its/, `Rank ${rank ?? ""}: its`);
  return {
    tone: stands ? "warn" : calm === NO_OOM ? "ok" : "quiet",
    word: stands ? "Outlier" : calm,
    sentence,
    rank,
  };
}

const NO_OOM = "No OOM";

/** Says "no OOM" only where OOMs would have been seen: without a device none are. */
function calmWord(strip: RankStrip, i: number): string {
  const seen = strip.capacityKind === "device" && Number.isFinite(strip.numOoms[i]);
  return seen ? NO_OOM : "Peak";
}

function others(oom: readonly number[], strip: RankStrip): string {
  const num = strip.rank.length - oom.length;
  if (oom.length !== 1 || num === 0) return "";
  return num === 1
    ? ", the other did not"
    : `, the other ${formatInteger(num)} did not`;
}

function peakOf(strip: RankStrip, rank: number): number {
  const peak = strip.peakBytes[strip.rank.indexOf(rank)];
  return peak === undefined || Number.isNaN(peak) ? -1 : peak;
}

/** One rank or all, how full, and sudden or growing: what decides where to look next. */
function oomFacts(
  strip: RankStrip,
  numOom: number,
  rank: number,
  byteUnit: ByteUnit,
): string {
  const i = strip.rank.indexOf(rank);
  const growth = strip.growthBytesPerStep[i] ?? Number.NaN;
  const whose = numOom === 1 ? "Its peak" : `The highest peak, on rank ${rank},`;
  const peak = ` ${whose} is ${peakWords(strip, i, byteUnit)}${versusMedian(strip, i, byteUnit)}`;
  return growth > 0
    ? `${peak}; it grew by ${formatBytes(growth, byteUnit)} per step.`
    : `${peak}.`;
}

function ranksWhere(strip: RankStrip, holds: (i: number) => boolean): number[] {
  return [...strip.rank].filter((_, i) => holds(i));
}

function nameRanks(ranks: readonly number[], strip: RankStrip): string {
  const total = formatInteger(strip.rank.length);
  if (ranks.length === strip.rank.length && ranks.length > 1)
    return `All ${total} ranks`;
  if (ranks.length === 1) return `Rank ${ranks[0] ?? ""}`;
  if (ranks.length <= MAX_NAMED) return `Ranks ${formatRankSet(ranks)} of ${total}`;
  const named = ranks.slice(0, MAX_NAMED);
  const rest = formatInteger(ranks.length - MAX_NAMED);
  return `Ranks ${formatRankSet(named)} and ${rest} more of ${total}`;
}

function outlierSentence(strip: RankStrip, byteUnit: ByteUnit): string | null {
  const [worst] = strip.outliers;
  const median = strip.medianPeakBytes;
  if (worst === undefined || median === null) return null;
  const peak = strip.peakBytes[strip.rank.indexOf(worst)] ?? Number.NaN;
  const above = formatBytes(peak - median, byteUnit);
  const all = formatInteger(strip.rank.length);
  const others =
    strip.outliers.length === 1
      ? "No other rank stands out."
      : `Also far above: ${nameRanks(strip.outliers.slice(1), strip)
          .replace(/ of .*$/, "")
          .replace(/^Rank/, "rank")}.`;
  return `Rank ${worst} peaks ${above} above the median of ${all} ranks. ${others}`;
}

function peakSentence(strip: RankStrip, byteUnit: ByteUnit): string {
  const highest = highestRank(strip);
  if (highest === null) return "";
  const i = strip.rank.indexOf(highest);
  return `The highest peak is ${peakWords(strip, i, byteUnit)}, on rank ${highest}.`;
}

const CAPACITY_PHRASES: Readonly<
  Record<RankStrip["capacityKind"], (size: string) => string>
> = {
  device: (size) => `the device’s ${size}`,
  cgroup_limit: (size) => `the memory limit of ${size}`,
  host_memory: (size) => `the host’s ${size}`,
  none: (size) => size,
};

function peakWords(strip: RankStrip, i: number, byteUnit: ByteUnit): string {
  const peak = strip.peakBytes[i] ?? Number.NaN;
  const capacity = strip.capacityBytes[i] ?? Number.NaN;
  if (!Number.isFinite(peak)) return "not recorded";
  const text = formatBytes(peak, byteUnit);
  if (!(capacity > 0)) return text;
  const share = threeDigits((100 * peak) / capacity);
  const size = formatBytes(capacity, byteUnit);
  return `${text}, ${share} % of ${CAPACITY_PHRASES[strip.capacityKind](size)}`;
}

function versusMedian(strip: RankStrip, i: number, byteUnit: ByteUnit): string {
  const difference =
    (strip.peakBytes[i] ?? Number.NaN) - (strip.medianPeakBytes ?? NaN);
  if (!Number.isFinite(difference) || strip.rank.length < 2) return "";
  if (Math.abs(difference) < 1) return ", the median of all ranks";
  const side = difference > 0 ? "above" : "below";
  return `, ${formatBytes(Math.abs(difference), byteUnit)} ${side} the median of all ranks`;
}
