/** No recording says anything of a trace: why, and which options change that. */

import type { Recorded } from "../../../api/types.gen";
import { NotCollected } from "../../not_collected";

const SNIPPET = `with collector.record(
    ...,
    schedule={"wait": 10, "warmup": 2, "active": 3, "repeat": 2},
    torch_profiler={
        "enabled": True,        # torch's profiler, in the schedule's active steps
        "operators": True,      # the tables of this page (on by itself)
        "record_shapes": True,  # these two add memory by category
        "with_stack": True,
    },
) as rec:`;

export function NoReports(props: {
  readonly absent: readonly Recorded[];
  /** Only trace files are there, which nobody recorded with MemBoard. */
  readonly hasTraces: boolean;
}) {
  return (
    <NotCollected
      title="No summary of a torch profile in this run"
      absent={props.absent}
      snippet={SNIPPET}
      note={
        props.hasTraces
          ? "The run's trace files were written without MemBoard's recorder, which sums them up while it saves them: their operators are under Operators."
          : "It is summed up when a cycle of the schedule ends, beside training. This page fills by itself."
      }
    />
  );
}
