import { Segmented } from "../shared/controls/choices";
import { usePageState } from "../shared/page_state";
import type { ViewProps } from "../shared/view_props";
import { COMPARE, PART_WORDS } from "./params";
import { RanksPart } from "./ranks_part";
import { RunsPart } from "./runs/run_table";
import { TracesPart } from "./traces/part";
import { TwoSides } from "./two";
import "./compare.css";

const PARTS = { runs: RunsPart, two: TwoSides, ranks: RanksPart, profiles: TracesPart };

export function CompareView(view: ViewProps) {
  const [params, change] = usePageState(view, COMPARE);
  // Traces alone have no allocator histories.
  const usual = view.run.madeOf === "traces" ? "profiles" : "two";
  const chosen = params.part ?? usual;
  const Part = PARTS[chosen];
  return (
    <div class="column compare">
      <Segmented
        label="Comparison"
        chosen={chosen}
        labels={PART_WORDS}
        onChoose={(option) =>
          change({ part: option === usual ? null : option }, "push")
        }
      />
      <Part view={view} params={params} change={change} />
    </div>
  );
}
