import type { ComponentChildren } from "preact";
import type { RunSummary } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { SAME_RUN } from "../../memory/history/moment";
import { Choice } from "../../shared/controls/choices";
import { ofRunA, type PartProps } from "../params";
import { runBefore } from "./run_before";

const RUNS_POLL_MS = 10_000;

interface OtherRun {
  readonly run: RunSummary | null;
  readonly choice: ComponentChildren;
  /** No other run is like B: a person has to choose one. */
  readonly isOpen: boolean;
}

/** Without a run in the URL: a similar run, or B itself where it `hasOthers` inside. */
export function useOtherRun(
  { view: { client, run }, params, change }: PartProps,
  hasOthers: boolean,
): OtherRun {
  const runs = useLive(client, "runs", {}, RUNS_POLL_MS).data?.runs ?? null;
  const onlyName = <b>{run.name}</b>;
  if (runs === null) return { run: null, choice: onlyName, isOpen: false };
  const word = params.aRun;
  // A run that has become B leaves A to a similar one.
  const named = runs.find(
    ({ id, name }) => id !== run.id && (id === word || name === word),
  );
  const others = runs.filter(
    (candidate) => candidate.id !== run.id && candidate.madeOf === run.madeOf,
  );
  const isOwn = hasOthers || word === SAME_RUN || others.length === 0;
  const chosen = named ?? (isOwn ? run : runBefore(others, run));
  if (runs.length < 2) return { run: chosen, choice: onlyName, isOpen: false };
  const options = runs.map(({ id, name }) => [id, name] as const);
  return {
    run: chosen,
    choice: (
      <Choice
        label="Run"
        value={chosen?.id ?? ""}
        onChange={(id) => change(ofRunA(id, run), "push")}
        of={chosen === null ? [["", "choose…"], ...options] : options}
      />
    ),
    isOpen: chosen === null,
  };
}
