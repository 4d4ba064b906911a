import { useSignal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import type { DistributedPart, TableRows } from "../../../api/types.gen";
import type { CellFacts } from "../../../widgets/heatmap/layout";
import type { XRange } from "../../../widgets/plot/range";
import { useWidth } from "../../../widgets/plot/canvas";
import { Segmented } from "../../shared/controls/choices";
import { RankHeatmap, useHeatAnswers } from "../../shared/heat_answers";
import { oneOf, usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { columnOf } from "../profiled/answer_table";

const OPENING_POLL_MS = 700;

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
  readonly onPick: (pick: CellFacts, part: DistributedPart) => void;
}) {
  const { view, cycle, ranks } = props;
  const [state, setState] = usePageState(view, WORDS);
  // With nothing exposed, that picture does not distinguish ranks.
  const isExposed = columnOf(ranks, "communication_ms")?.numbers.some((ms) => ms > 0);
  const usual = isExposed === true ? "communication" : "step";
  const part = state.part ?? usual;
  const box = useRef<HTMLDivElement>(null);
  const px = Math.round(useWidth(box));
  const [range, setRange] = useState<XRange | null>(null);
  const [opens, setOpens] = useState(false);
  const cursor = useSignal<number | null>(null);
  const answers = useHeatAnswers(
    view.client,
    "distributed_heatmap",
    { run: view.run.id, ranks: view.ranks.filter, cycle, part },
    px,
    opens ? OPENING_POLL_MS : view.pollMs,
  );
  const { coarse } = answers;
  const isOpening = (coarse.data?.numOpening ?? 0) > 0;
  if (isOpening !== opens) setOpens(isOpening);
  return (
    <div ref={box} class={coarse.stale ? "stale" : ""} aria-busy={coarse.stale}>
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
        view={view}
        answers={answers}
        label={() => `${TITLES[part]} by rank and profiled step`}
        range={range}
        onRange={setRange}
        cursor={cursor}
        onPick={(pick) => props.onPick(pick, part)}
        pooled="farthest"
        empty={
          <p class="quiet">
            {coarse.data?.numOpening === 0
              ? `No rank has ${TITLES[part].toLowerCase()} in its profiled steps.`
              : "The first traces are being read."}
          </p>
        }
      />
    </div>
  );
}

/** Of a cell's ranks the shown one: its value is farthest from the median of all. */
export function shownRank(
  table: TableRows,
  part: DistributedPart,
  first: number,
  last: number,
): number {
  const values = columnOf(table, `${part}_ms`)?.numbers ?? new Float64Array();
  const known = values.filter((value) => !Number.isNaN(value)).sort();
  const middle = known[Math.floor(known.length / 2)] ?? 0;
  let [found, most] = [first, -1];
  columnOf(table, "rank")?.numbers.forEach((rank, row) => {
    const distance = Math.abs((values[row] ?? NaN) - middle);
    if (rank < first || rank > last || !(distance > most)) return;
    [found, most] = [rank, distance];
  });
  return found;
}
