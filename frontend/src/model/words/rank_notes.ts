/** Which ranks deserve a look, from the columns of the rank strip; pure. */

import type { RankStrip } from "../../api/types.gen";

export type RankReason = "oom" | "lost" | "highest" | "outlier";

export interface RankNote {
  readonly rank: number;
  /** Most serious first. */
  readonly reasons: readonly RankReason[];
}

const ORDER: readonly RankReason[] = ["oom", "outlier", "highest", "lost"];

/** When half the job dies, its first few ranks tell as much as all of them. */
const MOST_PER_REASON = 4;

/** At most `limit` ranks, the most serious first, each once. */
export function rankNotes(strip: RankStrip, limit: number): readonly RankNote[] {
  const reasons = new Map<number, Set<RankReason>>();
  const counts = new Map<RankReason, number>();
  const add = (rank: number, reason: RankReason): void => {
    const count = counts.get(reason) ?? 0;
    if (count >= MOST_PER_REASON) return;
    counts.set(reason, count + 1);
    const known = reasons.get(rank);
    if (known === undefined) reasons.set(rank, new Set([reason]));
    else known.add(reason);
  };
  strip.rank.forEach((rank, i) => {
    if ((strip.numOoms[i] ?? 0) > 0) add(rank, "oom");
    if (strip.lost[i] === 1) add(rank, "lost");
  });
  for (const rank of strip.outliers) add(rank, "outlier");
  const highest = highestRank(strip);
  if (highest !== null) add(highest, "highest");
  const seriousness = (note: RankNote): number =>
    Math.min(...note.reasons.map((reason) => ORDER.indexOf(reason)));
  return [...reasons]
    .map(([rank, found]) => ({
      rank,
      reasons: ORDER.filter((reason) => found.has(reason)),
    }))
    .sort((a, b) => seriousness(a) - seriousness(b) || a.rank - b.rank)
    .slice(0, limit);
}

/** The rank with the highest peak; null where none was recorded. */
export function highestRank(strip: RankStrip): number | null {
  let best: number | null = null;
  let bestBytes = Number.NEGATIVE_INFINITY;
  strip.peakBytes.forEach((bytes, i) => {
    const rank = strip.rank[i];
    if (rank !== undefined && bytes > bestBytes) {
      best = rank;
      bestBytes = bytes;
    }
  });
  return best;
}
