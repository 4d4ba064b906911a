/** Ranks by profiled steps: which rank waits, or computes longer, and in which step. */

import { useSignal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import type { DistributedPart } from "../../../api/types.gen";
import { originOf } from "../../../model/words/origin";
import { Heatmap } from "../../../widgets/heatmap/heatmap";
import type { CellFacts } from "../../../widgets/heatmap/layout";
import type { XRange } from "../../../widgets/line_chart/types";
import { useWidth } from "../../../widgets/line_chart/use_size";
import { Failure, Skeleton } from "../../../widgets/state/state";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { heatHeightPx, useHeatAnswers } from "../../shared/heat_answers";
import { HEAT_WORDS, RANK_HEATS, rankHeat } from "./parts";

const OPENING_POLL_MS = 700;

export function RankHeat(props: {
  readonly view: ViewProps;
  readonly cycle: number | null;
  /** What is shown unless something was chosen. */
  readonly usual: DistributedPart;
  readonly onPick: (pick: CellFacts, part: DistributedPart) => void;
}) {
  const { view, cycle } = props;
  const { client, run, ranks: choice } = view;
  const part = rankHeat(view.params.get("rheat"), props.usual);
  const box = useRef<HTMLDivElement>(null);
  const px = Math.round(useWidth(box));
  const [range, setRange] = useState<XRange | null>(null);
  const [opens, setOpens] = useState(false);
  const cursor = useSignal<number | null>(null);
  const {
    coarse,
    cells: answer,
    sharp,
    ranks,
    setNeed,
  } = useHeatAnswers(
    client,
    "distributed_heatmap",
    { run: run.id, ranks: choice.filter, cycle, part },
    px,
    opens ? OPENING_POLL_MS : view.pollMs,
  );
  const isOpening = (coarse.data?.numOpening ?? 0) > 0;
  if (isOpening !== opens) setOpens(isOpening);
  return (
    <div ref={box} class={coarse.stale ? "stale" : ""} aria-busy={coarse.stale}>
      <div class="steps-map-bar">
        <Segmented<DistributedPart>
          label="What the cells of the heatmap are"
          title="Compare"
          options={RANK_HEATS}
          chosen={part}
          words={(one) => HEAT_WORDS[one]}
          onChoose={(one) =>
            view.setParams({ rheat: one === props.usual ? null : one }, "push")
          }
        />
        <span class="quiet">
          A click on a cell shows its step and marks its rank in the table
        </span>
      </div>
      {answer === null &&
        (coarse.error === null ? (
          <Skeleton heightPx={heatHeightPx(0)} />
        ) : (
          <Failure failure={coarse.error} />
        ))}
      {answer !== null && (answer.series === null || answer.numRows === 0) && (
        <p class="quiet">
          {coarse.data?.numOpening === 0
            ? `No rank has ${HEAT_WORDS[part][0].toLowerCase()} in its profiled steps.`
            : "The first traces are being read."}
        </p>
      )}
      {answer !== null && answer.series !== null && answer.numRows > 0 && (
        <Heatmap
          label={`${HEAT_WORDS[part][0]} by rank and profiled step`}
          overview={answer}
          detail={sharp}
          ranks={ranks}
          pinned={choice.pinned}
          range={range}
          onRange={setRange}
          onNeed={setNeed}
          onPick={(pick) => props.onPick(pick, part)}
          cursor={cursor}
          pooled="farthest"
          theme={view.theme}
          byteUnit={view.byteUnit}
          heightPx={heatHeightPx(ranks.length)}
          origin={originOf(run)}
        />
      )}
    </div>
  );
}
