/** What stands in the middle: the view, or why there is none. Never nothing. */

import type { ComponentChildren } from "preact";
import type { RunsResponse, RunSummary } from "../api/types.gen";
import type { Live } from "../api/watch";
import { formatInteger } from "../base/bytes";
import { Failure, Nothing, Skeleton } from "../widgets/state/state";
import { Empty } from "./chrome/empty";

export interface ContentProps {
  readonly runs: Live<RunsResponse>;
  readonly run: RunSummary | null;
  /** A chosen rank that the run does not have. */
  readonly missingRank: number | null;
  readonly showNewest: () => void;
  readonly showAllRanks: () => void;
  readonly children: ComponentChildren;
}

export function Content(props: ContentProps) {
  const { runs, run, missingRank } = props;
  if (runs.data === null) {
    return (
      <main class="view">
        {runs.error === null ? (
          <Skeleton heightPx={320} />
        ) : (
          <Failure failure={runs.error} />
        )}
      </main>
    );
  }
  if (runs.data.runs.length === 0) return <Empty runs={runs.data} />;
  if (run === null) {
    return (
      <main class="view">
        <Nothing title="The run this link names is not in the logdir">
          <p>It may have been moved, deleted, or belong to another TensorBoard.</p>
          <p>
            <button type="button" class="button" onClick={props.showNewest}>
              Show another run
            </button>
          </p>
        </Nothing>
      </main>
    );
  }
  if (missingRank !== null) {
    return (
      <main class="view">
        <Nothing title={`Rank ${missingRank} is not in this run`}>
          <p>
            The run has {formatInteger(run.numRanks)}{" "}
            {run.numRanks === 1 ? "rank" : "ranks"} so far.
          </p>
          <p>
            <button type="button" class="button" onClick={props.showAllRanks}>
              Show all ranks
            </button>
          </p>
        </Nothing>
      </main>
    );
  }
  return <main class="view">{props.children}</main>;
}
