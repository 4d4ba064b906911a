/** Searching ranks and collectives, and how far ranks are apart. Pure. */

import type {
  DistributedCollectives,
  DistributedPart,
  DistributedResponse,
} from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { parseRankSet } from "../../../base/rank_set";
import { formatSeconds } from "../../../base/durations";
import { partMs } from "./columns";

/** Of ranks without a trace, so many are named. */
const MISSING_NAMED = 8;

export interface NamedRanks {
  /** null: all of them. */
  readonly ranks: ReadonlySet<number> | null;
  /** What is not understood; null: nothing. */
  readonly problem: string | null;
}

/** Ranks that a text such as `0-7,64` names; all while it is empty, or no such text. */
export function ranksNamed(text: string): NamedRanks {
  // A range that is being typed names its first rank.
  const found = parseRankSet(text.replace(/[-,\s]+$/, ""));
  if (!found.ok) return { ranks: null, problem: found.problem };
  return {
    ranks: found.ranks.length === 0 ? null : new Set(found.ranks),
    problem: null,
  };
}

/** Rows that hold every word: in kind or group, or as the rank's number; null: all do. */
export function collectivesHolding(
  { rank, kind, group }: DistributedCollectives,
  text: string,
): ReadonlySet<number> | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const kept = new Set<number>();
  rank.forEach((number, row) => {
    const said = `${kind[row] ?? ""}\n${group[row] ?? ""}`.toLowerCase();
    if (words.every((word) => word === String(number) || said.includes(word))) {
      kept.add(row);
    }
  });
  return kept;
}

/**
 * Of the ranks that a cell stands for, the one that it shows: whose value is farthest from
 * the middle of all. Of one rank that rank.
 */
export function shownRank(
  data: DistributedResponse,
  part: DistributedPart,
  first: number,
  last: number,
): number {
  const values = part === "step" ? data.stepMs : partMs(data, part);
  const known = values.filter((value) => !Number.isNaN(value)).sort();
  const middle = known[Math.floor(known.length / 2)] ?? 0;
  let [found, most] = [first, -1];
  data.rank.forEach((rank, row) => {
    const distance = Math.abs((values[row] ?? NaN) - middle);
    if (rank < first || rank > last || !(distance > most)) return;
    [found, most] = [rank, distance];
  });
  return found;
}

/**
 * Who waits for whom, and how long: of the process group in which ranks wait longest, and
 * the rank that waits most in a step. "" where no trace tells it.
 */
export function waitWords({ groups, rank, waitingMs }: DistributedResponse): string {
  const seconds = (ms: number | undefined): string => formatSeconds((ms ?? NaN) / 1e3);
  const group = groups.kind.findIndex(
    (_, row) => (groups.lastRank[row] ?? -1) >= 0 && (groups.meanSkewMs[row] ?? 0) > 0,
  );
  if (group < 0) return "";
  const name = groups.group[group] ?? "";
  const last = groups.lastRank[group] ?? -1;
  const share = (100 * (groups.lastShare[group] ?? NaN)).toFixed(0);
  const first = `The others wait for rank ${last}: it comes last in ${share} % of ${groups.kind[group] ?? ""}${name === "" ? "" : ` of group ${name}`}, ${seconds(groups.meanSkewMs[group])} each on average, at most ${seconds(groups.maxSkewMs[group])}.`;
  let most = -1;
  waitingMs.forEach((ms, row) => {
    if (ms > (waitingMs[most] ?? 0)) most = row;
  });
  return most < 0
    ? first
    : `${first} Rank ${rank[most] ?? "–"} waits longest, ${seconds(waitingMs[most])}.`;
}

/** Which ranks have no trace here, and what is not known without them; "" without any. */
export function missingWords(data: DistributedResponse): string {
  if (data.numMissing <= 0 || data.numCollectives === 0) return "";
  if (data.numOpening > 0) return "";
  const named = [...data.missing].slice(0, MISSING_NAMED).join(", ");
  const more = data.numMissing - Math.min(data.missing.length, MISSING_NAMED);
  const rest = more > 0 ? ` and ${formatInteger(more)} more` : "";
  const ranks = data.numMissing === 1 ? `rank ${named}` : `ranks ${named}${rest}`;
  return `No trace of ${ranks} is compared here. How long ranks waited, which came last and the bandwidth are not known for collectives in which ${data.numMissing === 1 ? "it takes" : "they take"} part.`;
}

/** The middle rank's exposed communication, and who is farthest from it; "" of one rank. */
export function spreadWords(data: DistributedResponse): string {
  const exposed = partMs(data, "communication");
  const known = Array.from(data.rank, (_, row) => row)
    .filter((row) => !Number.isNaN(exposed[row] ?? NaN))
    .sort((a, b) => (exposed[a] ?? 0) - (exposed[b] ?? 0));
  const [least, most] = [known[0], known[known.length - 1]];
  const middle = known[Math.floor(known.length / 2)];
  if (known.length < 2 || least === undefined || most === undefined) return "";
  if (middle === undefined || (exposed[most] ?? 0) <= 0) return "";
  const words = (row: number): string =>
    `${formatSeconds((exposed[row] ?? 0) / 1e3)} (rank ${data.rank[row] ?? "–"})`;
  const ends = `Exposed communication of a step: ${words(least)} to ${words(most)}`;
  if (known.length === 2) return `${ends}.`;
  return `${ends}, median ${formatSeconds((exposed[middle] ?? 0) / 1e3)}.`;
}
