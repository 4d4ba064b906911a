/** The runs that B may be of, and the one it is of. */

import type { RunSummary } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { ViewProps } from "../shared/view_props";

const RUNS_POLL_MS = 10_000;

export interface OtherRun {
  /** null until the runs are known. */
  readonly known: readonly RunSummary[] | null;
  readonly runs: readonly RunSummary[];
  /** Id of the run of B. */
  readonly bRun: string;
}

/** `word` is the URL's; "" for the run of A. */
export function useOtherRun({ client, run }: ViewProps, word: string): OtherRun {
  const known = useLive(client, "runs", {}, RUNS_POLL_MS).data?.runs ?? null;
  const runs = known ?? [run];
  // A link names a run by its id; a person who types it, by its name.
  const named =
    runs.find(({ id }) => id === word) ?? runs.find(({ name }) => name === word);
  return { known, runs, bRun: word === "" ? run.id : (named?.id ?? word) };
}
