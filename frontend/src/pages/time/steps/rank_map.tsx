/** Ranks by steps: how far each is from the rank in the middle of the same step. */

import { useSignal } from "@preact/signals";
import { useState } from "preact/hooks";
import { originOf } from "../../../model/words/origin";
import { partLabel } from "../../../model/words/step_part";
import { Heatmap } from "../../../widgets/heatmap/heatmap";
import type { XRange } from "../../../widgets/line_chart/types";
import { Failure, Skeleton } from "../../../widgets/state/state";
import { Choice } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { heatHeightPx, useHeatAnswers } from "../../shared/heat_answers";
import { HEAT_PARTS, type HeatPart, type StepsParams } from "./params";

export function StepMap(props: {
  readonly view: ViewProps;
  readonly params: StepsParams;
  /** What tells the ranks apart; shown unless something was chosen. */
  readonly telling: HeatPart;
  /** Shared with the charts above where their x is the step; null where it is not. */
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly onPick: (step: number) => void;
  readonly px: number;
}) {
  const { view, params, px } = props;
  const { client, run, ranks: choice, pollMs } = view;
  const onSteps = params.x === "step";
  const part = params.heat ?? props.telling;
  const [ownRange, setOwnRange] = useState<XRange | null>(null);
  const ownCursor = useSignal<number | null>(null);
  const subject = {
    run: run.id,
    ranks: choice.filter,
    phase: params.phase,
    part,
  };
  const {
    coarse,
    cells: answer,
    sharp,
    ranks,
    setNeed,
  } = useHeatAnswers(client, "step_heatmap", subject, px, pollMs);
  if (answer === null) {
    return coarse.error === null ? (
      <Skeleton heightPx={heatHeightPx(0)} />
    ) : (
      <Failure failure={coarse.error} />
    );
  }
  return (
    <section class="steps-map" aria-label="Ranks beside each other">
      <div class="steps-map-bar">
        <Choice
          label="Compare"
          value={part}
          onChange={(value) =>
            view.setParams({ heat: value === props.telling ? null : value }, "push")
          }
        >
          {HEAT_PARTS.map((one) => (
            <option key={one} value={one}>
              {partLabel(one)}
            </option>
          ))}
        </Choice>
        <span class="quiet">
          beyond the rank in the middle of the same step, in % of its step time
        </span>
      </div>
      {answer.series === null || answer.numRows === 0 ? (
        <p class="quiet">{partLabel(part)} was not recorded on these ranks.</p>
      ) : (
        <Heatmap
          label={`${partLabel(part)} by rank and step`}
          overview={answer}
          detail={sharp}
          ranks={ranks}
          pinned={choice.pinned}
          range={onSteps ? props.range : ownRange}
          onRange={onSteps ? props.setRange : setOwnRange}
          onNeed={setNeed}
          onPick={(picked) => props.onPick(picked.firstStep)}
          cursor={onSteps ? view.cursor : ownCursor}
          theme={view.theme}
          byteUnit={view.byteUnit}
          heightPx={heatHeightPx(ranks.length)}
          diverging
          origin={originOf(run)}
          page={{ view, name: "steps", subject: "heatmap" }}
        />
      )}
    </section>
  );
}
