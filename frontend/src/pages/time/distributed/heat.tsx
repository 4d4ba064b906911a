import { useRef } from "preact/hooks";
import type { DistributedPart, TableRows } from "../../../api/types.gen";
import type { CellFacts } from "../../../widgets/heatmap/layout";
import { useWidth } from "../../../widgets/plot/canvas";
import { Segmented } from "../../shared/controls/choices";
import { RankHeatmap, useHeatAnswers } from "../../shared/heat_answers";
import { oneOf, usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { columnOf, numbersOf } from "../profiled/answer_table";

/** Parts that distinguish ranks come first. */
const PARTS = ["communication", "overlap", "computation", "other", "step"] as const;
const TITLES: Readonly<Record<DistributedPart, string>> = {
  communication: "Exposed communication",
  overlap: "Hidden communication",
  computation: "Computation",
  other: "Other",
  step: "Step time",
};
const WORDS = { part: oneOf("rheat", PARTS, null) };

export function RankHeat(props: {
  readonly view: ViewProps;
  readonly cycle: number | null;
  readonly ranks: TableRows;
  readonly onPick: (rank: number, cell: CellFacts) => void;
}) {
  const { view, cycle, ranks } = props;
  const [state, setState] = usePageState(view, WORDS);
  // With nothing exposed, that picture does not distinguish ranks.
  const isExposed = numbersOf(ranks, "communication_ms").some((ms) => ms > 0);
  const usual = isExposed ? "communication" : "step";
  const part = state.part ?? usual;
  const box = useRef<HTMLDivElement>(null);
  const px = useWidth(box);
  const answers = useHeatAnswers(view, "distributed_heatmap", { cycle, part }, px);
  const { data, stale } = answers.coarse;
  return (
    <div ref={box} class={stale ? "stale" : ""} aria-busy={stale}>
      <div class="row">
        <Segmented<DistributedPart>
          label="What the cells of the heatmap are"
          title="Compare"
          options={PARTS}
          chosen={part}
          words={(one) => [TITLES[one], columnOf(ranks, `${one}_ms`)?.help ?? ""]}
          onChoose={(one) => setState({ part: one === usual ? null : one }, "push")}
        />
        <span class="quiet">A click on a cell chooses its rank and step</span>
      </div>
      <RankHeatmap
        answers={answers}
        label={() => `${TITLES[part]} by rank and profiled step`}
        onPick={props.onPick}
        pooled="farthest"
        empty={
          <p class="quiet">
            {data?.numOpening === 0
              ? `No rank has ${TITLES[part].toLowerCase()} in its profiled steps.`
              : "The first traces are being read."}
          </p>
        }
      />
    </div>
  );
}
