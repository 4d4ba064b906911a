/** Which ranks deserve a look, from the columns of the rank strip; pure. */

import type { RankStrip } from "../../api/types.gen";

/** Most serious first. */
const REASONS = ["oom", "outlier", "highest", "lost"] as const;

export type RankReason = (typeof REASONS)[number];

interface RankNote {
  readonly rank: number;
  /** Most serious first. */
  readonly reasons: readonly RankReason[];
}

/** When half the job dies, its first few ranks tell as much as all of them. */
const MOST_PER_REASON = 4;

/** At most `limit` ranks, the most serious first, each once. */
export function rankNotes(strip: RankStrip, limit: number): readonly RankNote[] {
  const all = [...strip.rank];
  const peak = strip.peakBytes.reduce((a, b) => (b > a ? b : a), -Infinity);
  const highest = all[strip.peakBytes.indexOf(peak)];
  const found: Readonly<Record<RankReason, readonly number[]>> = {
    oom: all.filter((_, i) => (strip.numOoms[i] ?? 0) > 0),
    outlier: strip.outliers,
    highest: highest === undefined ? [] : [highest],
    lost: all.filter((_, i) => strip.lost[i] === 1),
  };
  const notes = new Map<number, RankReason[]>();
  for (const reason of REASONS) {
    const few = found[reason].slice(0, MOST_PER_REASON);
    for (const rank of few.sort((a, b) => a - b)) {
      notes.set(rank, [...(notes.get(rank) ?? []), reason]);
    }
  }
  return [...notes].map(([rank, reasons]) => ({ rank, reasons })).slice(0, limit);
}
