/** Which ranks the heatmap has rows for. Pure. */

import type { HeatmapResponse } from "../../api/types.gen";
import { parseRankSet } from "../../base/rank_set";

/** Known ranks narrowed by the filter; a filter that cannot be read narrows nothing. */
export function drawnRanks(known: Int32Array, filter: string): Int32Array {
  if (filter === "") return known;
  const parsed = parseRankSet(filter);
  if (!parsed.ok) return known;
  const wanted = new Set(parsed.ranks);
  return known.filter((rank) => wanted.has(rank));
}

/** The ranks an answer's rows stand for, before the list of all ranks has arrived. */
export function ranksOfRows(answer: HeatmapResponse, numRanks: number): Int32Array {
  const ranks: number[] = [];
  answer.rowRank.forEach((first, row) => {
    const next = answer.rowRank[row + 1] ?? Infinity;
    for (let i = 0; i < answer.ranksPerRow && ranks.length < numRanks; i += 1) {
      if (first + i < next) ranks.push(first + i);
    }
  });
  return Int32Array.from(ranks);
}

/** `next`, or `before` itself where they hold the same: identity says "unchanged". */
export function keepIfEqual(before: Int32Array, next: Int32Array): Int32Array {
  if (before.length !== next.length) return next;
  return before.every((rank, i) => rank === next[i]) ? before : next;
}

/** The rank of the row that holds the highest cell; null where nothing is recorded. */
export function highestRank(answer: HeatmapResponse): number | null {
  let best = 0;
  let found: number | null = null;
  answer.values.forEach((cell, i) => {
    if (cell <= best) return;
    best = cell;
    found = answer.rowRank[Math.floor(i / answer.numColumns)] ?? null;
  });
  return found;
}
