/** What is set against what, before anybody chose; and which run A is of. */

import type { HistoriesResponse, HistoryDevice, RunSummary } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { ViewProps } from "../shared/view_props";
import { SAME_RUN } from "../memory/history/params";

const RUNS_POLL_MS = 10_000;

export interface OtherRun {
  /** Those that may be A; empty until they are known. */
  readonly runs: readonly RunSummary[];
  /** Of A; null until the runs are known. */
  readonly run: RunSummary | null;
}

/**
 * The run of A. `word` is the URL's; where it is empty: `usual`, the run before, or that
 * of B itself where there is none before.
 */
export function useOtherRun(
  { client, run }: ViewProps,
  word: string,
  usual: "before" | "same",
): OtherRun {
  const runs = useLive(client, "runs", {}, RUNS_POLL_MS).data?.runs ?? null;
  if (runs === null) return { runs: [], run: null };
  if (word === SAME_RUN) return { runs, run };
  // A link names a run by its id; a person who types it, by its name.
  const named = runs.find((one) => one.id === word || one.name === word);
  const before = usual === "before" ? runBefore(runs, run) : null;
  return { runs, run: named ?? before ?? run };
}

/**
 * The run that a recorded one is compared with: the one before it of the same name but
 * for the number at its end, else the one before it, else the next; null: there is none.
 */
export function runBefore(
  runs: readonly RunSummary[],
  run: RunSummary,
): RunSummary | null {
  if (run.madeOf !== "recording") return null;
  const ordered = runs
    .filter((one) => one.madeOf === run.madeOf)
    .sort(
      (x, y) =>
        x.firstMs - y.firstMs ||
        x.name.localeCompare(y.name, undefined, { numeric: true }),
    );
  const at = ordered.findIndex(({ id }) => id === run.id);
  const older = ordered.slice(0, Math.max(at, 0));
  const alike = older.findLast((one) => stemOf(one.name) === stemOf(run.name));
  return alike ?? older.at(-1) ?? ordered[at + 1] ?? null;
}

/** A run's name without the number at its end. */
function stemOf(name: string): string {
  return name.replace(/[\d._-]+$/, "");
}

/**
 * The history that A is at first: of the same run the one before B by the same rank, else
 * the nearest other one; B itself where there is no other. Of another run its default.
 */
export function otherHistory(
  { histories, default: first }: HistoriesResponse,
  b: string,
  sameRun: boolean,
): string {
  if (!sameRun) return first ?? histories.at(-1)?.reference.id ?? "";
  const at = histories.findIndex(({ reference }) => reference.id === b);
  const rank = histories[at]?.reference.rank ?? null;
  const before = histories
    .slice(0, Math.max(0, at))
    .findLast(({ reference }) => reference.rank === rank);
  const near = before ?? histories[at - 1] ?? histories[at + 1];
  return near?.reference.id ?? b;
}

/** A moment that can be chosen by its name. */
export interface NamedMoment {
  /** "" for the peak. */
  readonly value: string;
  readonly label: string;
}

export function lastMoment({ numEvents }: HistoryDevice): number {
  return numEvents - 1;
}

/** Peak, end, and every out-of-memory error (at most twenty). */
export function namedMoments(device: HistoryDevice): readonly NamedMoment[] {
  const { marks } = device;
  const ooms: NamedMoment[] = [];
  marks.kind.forEach((code, i) => {
    if (marks.kinds[code] !== "oom" || ooms.length >= 20) return;
    const moment = marks.moment[i] ?? -1;
    ooms.push({ value: moment.toString(), label: `out of memory, event ${moment}` });
  });
  return [
    { value: "", label: "peak of the history" },
    ...ooms,
    { value: lastMoment(device).toString(), label: "end" },
  ];
}
