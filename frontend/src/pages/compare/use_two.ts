/** What A and B request: their histories, the two runs, the two moments. */

import type { ApiError } from "../../api/client";
import type {
  CompareResponse,
  CompareRunsResponse,
  HistoriesResponse,
  RunSummary,
} from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import { chosenDevice, chosenHistory, useHistory } from "../memory/history/use_history";
import type { ViewProps } from "../shared/view_props";
import { historyOfA, isSameRank, momentOfA, type RankOfRun } from "./defaults";
import type { PartProps } from "./params";
import type { Side } from "./sides";

/** Requested only where they are not those of B. */
export function useHistoriesOfA(
  { client, pollMs }: ViewProps,
  a: RankOfRun | null,
  b: RankOfRun,
  historiesOfB: HistoriesResponse | null,
) {
  const isShared = a !== null && isSameRank(a, b);
  const query = a === null || isShared ? null : { run: a.run, rank: a.rank };
  const live = useLive(client, "histories", query, pollMs);
  const histories = isShared ? historiesOfB : live.data;
  // Until the new answer comes, `live` has that of the run chosen before.
  const isCurrent = histories?.run.id === a?.run;
  return { histories: isCurrent ? histories : null, error: live.error };
}

interface RunComparison {
  /** Both are recordings, and not the same rank of one run. */
  readonly isRequested: boolean;
  readonly answer: CompareRunsResponse | null;
  readonly error: ApiError | null;
  readonly stale: boolean;
}

export function useRunComparison(
  { client, run, pollMs }: ViewProps,
  runA: RunSummary | null,
  a: RankOfRun | null,
  b: RankOfRun,
): RunComparison {
  const areRecordings = runA?.madeOf === "recording" && run.madeOf === "recording";
  const query =
    areRecordings && a !== null && !isSameRank(a, b)
      ? { run: a.run, rank: a.rank, b_run: b.run, b_rank: b.rank }
      : null;
  const { data, error, stale } = useLive(client, "compare_runs", query, pollMs);
  const isRequested = query !== null;
  return { isRequested, answer: isRequested ? data : null, error, stale };
}

export interface Sides {
  readonly a: Side;
  readonly b: Side;
  /** Each has a history. */
  readonly hasBoth: boolean;
  /** Of the same history and device. */
  readonly areSame: boolean;
}

export function useSides(
  { view: { client, run }, params }: PartProps,
  runA: RunSummary | null,
  historiesOfA: HistoriesResponse | null,
  historiesOfB: HistoriesResponse | null,
): Sides {
  const isSameRun = runA?.id === run.id;
  const idOfB =
    historiesOfB === null ? "" : chosenHistory(historiesOfB, params.b.history);
  const idOfA =
    historiesOfA === null
      ? ""
      : historyOfA(historiesOfA, params.a.history, isSameRun ? idOfB : null);
  const hasBoth = idOfA !== "" && idOfB !== "";
  const openedA = useHistory(client, runA?.id ?? run.id, hasBoth ? idOfA : null);
  const openedB = useHistory(client, run.id, hasBoth ? idOfB : null);
  const deviceOfB = chosenDevice(openedB.answer?.facts ?? null, params.b.device);
  // By default A is of B's device.
  const deviceOfA = chosenDevice(
    openedA.answer?.facts ?? null,
    params.a.device ?? deviceOfB?.device ?? null,
  );
  const areSame =
    isSameRun && idOfA === idOfB && deviceOfA?.device === deviceOfB?.device;
  return {
    a: {
      name: "A",
      histories: hasBoth ? historiesOfA : null,
      history: idOfA,
      opened: openedA,
      device: deviceOfA,
      moment: momentOfA(params.a, params.b, areSame ? deviceOfA : null),
    },
    b: {
      name: "B",
      histories: hasBoth ? historiesOfB : null,
      history: idOfB,
      opened: openedB,
      device: deviceOfB,
      moment: params.b.moment,
    },
    hasBoth,
    areSame,
  };
}

export function useMomentComparison(
  { view: { client, run }, params }: PartProps,
  runA: RunSummary | null,
  { a, b, hasBoth }: Sides,
): { readonly answer: CompareResponse | null; readonly error: ApiError | null } {
  const query =
    runA !== null && a.device !== null && b.device !== null
      ? {
          run: runA.id,
          history: a.history,
          device: a.device.device,
          moment: a.moment,
          b_run: run.id,
          b_history: b.history,
          b_device: b.device.device,
          b_moment: b.moment,
          match: params.match === "exact" ? null : params.match,
        }
      : null;
  const { data, error } = useLive(client, "compare", query);
  return { answer: hasBoth ? data : null, error };
}
