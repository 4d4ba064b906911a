import { partLabel } from "../../../model/words/step_part";
import { Choice } from "../../shared/controls/choices";
import {
  RankHeatmap,
  useHeatAnswers,
  type SharedRange,
} from "../../shared/heat_answers";
import type { ViewProps } from "../../shared/view_props";
import { HEAT_PARTS, type HeatPart, type StepsParams } from "./params";

export function StepMap(props: {
  readonly view: ViewProps;
  readonly params: StepsParams;
  /** The part that distinguishes the ranks: the default. */
  readonly telling: HeatPart;
  readonly shared: SharedRange;
  readonly onPick: (step: number) => void;
  readonly px: number;
}) {
  const { view, params, telling } = props;
  const part = params.heat ?? telling;
  const subject = { phase: params.phase, part };
  const answers = useHeatAnswers(view, "step_heatmap", subject, props.px, {
    shared: params.x === "step" ? props.shared : null,
  });
  return (
    <section aria-label="Ranks beside each other">
      {answers.cells !== null && (
        <div class="row">
          <Choice
            label="Compare"
            value={part}
            of={HEAT_PARTS.map((one) => [one, partLabel(one)])}
            onChange={(value) =>
              view.setParams({ heat: value === telling ? null : value }, "push")
            }
          />
          <span class="quiet">
            above the median rank of the same step, in % of its step time
          </span>
        </div>
      )}
      <RankHeatmap
        answers={answers}
        label={() => `${partLabel(part)} by rank and step`}
        onPick={(_rank, { firstStep }) => props.onPick(firstStep)}
        diverging
        page={{ view }}
        empty={<p class="quiet">{partLabel(part)} was not recorded on these ranks.</p>}
      />
    </section>
  );
}
