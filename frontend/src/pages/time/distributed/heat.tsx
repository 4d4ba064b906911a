/** Ranks by profiled steps: which rank waits, or computes longer, and in which step. */

import { useSignal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import type { DistributedPart } from "../../../api/types.gen";
import type { CellFacts } from "../../../widgets/heatmap/layout";
import type { XRange } from "../../../widgets/plot/range";
import { useWidth } from "../../../widgets/plot/canvas";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { RankHeatmap, useHeatAnswers } from "../../shared/heat_answers";
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
  const answers = useHeatAnswers(
    client,
    "distributed_heatmap",
    { run: run.id, ranks: choice.filter, cycle, part },
    px,
    opens ? OPENING_POLL_MS : view.pollMs,
  );
  const { coarse } = answers;
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
      <RankHeatmap
        view={view}
        answers={answers}
        label={() => `${HEAT_WORDS[part][0]} by rank and profiled step`}
        range={range}
        onRange={setRange}
        cursor={cursor}
        onPick={(pick) => props.onPick(pick, part)}
        pooled="farthest"
        empty={
          <p class="quiet">
            {coarse.data?.numOpening === 0
              ? `No rank has ${HEAT_WORDS[part][0].toLowerCase()} in its profiled steps.`
              : "The first traces are being read."}
          </p>
        }
      />
    </div>
  );
}
