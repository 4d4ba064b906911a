import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client } from "../../api/client";
import type { EmptyTab, RunsResponse, RunSummary } from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import type { Place } from "../location";

const RUNS_POLL_MS = 1_000;
/** Here the overview feeds only the rail and the tabs. */
const OVERVIEW_POLL_MS = 5_000;
export const RESTING_POLL_MS = 10_000;
/** Big runs are read once per answer, in turn: the page goes first, the rail waits. */
const BIG_RUN_RANKS = 512;
const BIG_RUN_DELAY_MS = 2_500;
const NOWHERE_EMPTY: readonly EmptyTab[] = [];

/** The open run and what the rail and the tabs show of it. `isUrgent`: do not wait. */
export function useOpenRun(
  client: Client,
  place: Pick<Place, "run" | "rank">,
  isUrgent: boolean,
) {
  const runs = useLive(client, "runs", {}, RUNS_POLL_MS);
  const first = useFirstRun(runs.data);
  const run = runs.data === null ? null : findRun(runs.data.runs, place.run, first);
  const hasWaited = useElapsed(run?.id ?? null, BIG_RUN_DELAY_MS);
  const isSmall = (run?.numRanks ?? 0) <= BIG_RUN_RANKS;
  const { data: answer, error } = useLive(
    client,
    "overview",
    run !== null && (isSmall || hasWaited || isUrgent) ? { run: run.id } : null,
    run?.live === true ? OVERVIEW_POLL_MS : RESTING_POLL_MS,
  );
  // The answer of the run before stays while the next one is read.
  const overview = answer?.run.id === run?.id ? answer : null;
  const strip = overview?.strip ?? null;
  return {
    runs,
    run,
    isReading: run !== null && overview === null && error === null,
    strip,
    empty: overview?.empty ?? NOWHERE_EMPTY,
    neighbours: neighbourRanks(strip?.rank ?? null, place.rank),
  };
}

/** Since `subject` last changed; null: never. */
function useElapsed(subject: string | null, delayMs: number): boolean {
  const [elapsed, setElapsed] = useState<string | null>(null);
  useEffect(() => {
    const timer = window.setTimeout(() => setElapsed(subject), delayMs);
    return () => window.clearTimeout(timer);
  }, [subject, delayMs]);
  return subject !== null && elapsed === subject;
}

/** By id or, typed by a person, by name; no name: the one that needs a look. */
export function findRun(
  runs: readonly RunSummary[],
  id: string,
  first: string,
): RunSummary | null {
  const wanted = id === "" ? first : id;
  const byId = runs.find((run) => run.id === wanted);
  return byId ?? runs.find((run) => run.name === wanted) ?? null;
}

/** Stays while more becomes known of the runs; changes when a run appears or goes. */
function useFirstRun(data: RunsResponse | null): string {
  const ids = data?.runs.map((run) => run.id).join();
  return useMemo(() => data?.standings[0]?.run ?? "", [ids]);
}

/** Just below and above the chosen rank; the last and first where none is chosen. */
export function neighbourRanks(runRanks: Int32Array | null, rank: number | null) {
  return {
    before: runRanks?.findLast((other) => other < (rank ?? Infinity)) ?? null,
    after: runRanks?.find((other) => other > (rank ?? -1)) ?? null,
  };
}
