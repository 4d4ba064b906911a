/** What A is where the URL does not say it: it follows B. */

import type { HistoriesResponse, HistoryDevice } from "../../api/types.gen";
import { chosenHistory } from "../memory/history/use_history";
import type { SideState } from "./params";

/** `rank` null: all ranks. */
export type RankOfRun = Readonly<{ run: string; rank: number | null }>;

export function isSameRank(a: RankOfRun, b: RankOfRun): boolean {
  return a.run === b.run && a.rank === b.rank;
}

/** Without a choice: all ranks where A is B's own run, else the rank that B shows. */
export function rankOfA(runA: string, rankParam: string, b: RankOfRun): RankOfRun {
  if (rankParam === "") return { run: runA, rank: runA === b.run ? null : b.rank };
  return { run: runA, rank: /^\d+$/.test(rankParam) ? Number(rankParam) : null };
}

/** The one before it of the same rank, else a near one. */
export function nearest(
  list: readonly { readonly id: string; readonly rank: number | null }[],
  id: string,
): string {
  const index = list.findIndex((entry) => entry.id === id);
  const rank = list[index]?.rank ?? null;
  const alike = (entry: { readonly rank: number | null }): boolean =>
    entry.rank === rank;
  const before = list.slice(0, Math.max(0, index)).findLast(alike);
  const near =
    before ?? list.slice(index + 1).find(alike) ?? list[index - 1] ?? list[index + 1];
  return near?.id ?? id;
}

/** `b` is B's history, where both are of one run. */
export function historyOfA(
  list: HistoriesResponse,
  named: string,
  b: string | null,
): string {
  if (named !== "" || b === null) return chosenHistory(list, named);
  return nearest(
    list.histories.map(({ reference }) => reference),
    b,
  );
}

export function lastMoment({ numEvents }: HistoryDevice): number {
  return numEvents - 1;
}

/**
 * null: the peak. `shared` is the device where A and B show the same one: without a
 * choice on either side A is then the end, or both were the peak.
 */
export function momentOfA(
  a: SideState,
  b: SideState,
  shared: HistoryDevice | null,
): number | null {
  const isChosen = a.moment !== null || a.history !== "" || b.moment !== null;
  return shared === null || isChosen ? a.moment : lastMoment(shared);
}
