import { partLabel } from "../../../model/words/step_part";
import type { XRange } from "../../../widgets/plot/range";
import { Choice } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { RankHeatmap, useHeatAnswers, useHeatRange } from "../../shared/heat_answers";
import { HEAT_PARTS, type HeatPart, type StepsParams } from "./params";

export function StepMap(props: {
  readonly view: ViewProps;
  readonly params: StepsParams;
  /** The part that distinguishes the ranks: the default. */
  readonly telling: HeatPart;
  /** Shared with the charts above where their x is the step, else null. */
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly onPick: (step: number) => void;
  readonly px: number;
}) {
  const { view, params, px } = props;
  const { client, run, ranks: choice, pollMs } = view;
  const part = params.heat ?? props.telling;
  const range = useHeatRange(view, params.x === "step", props.range, props.setRange);
  const subject = {
    run: run.id,
    ranks: choice.filter,
    phase: params.phase,
    part,
  };
  const answers = useHeatAnswers(client, "step_heatmap", subject, px, pollMs);
  const heat = (
    <RankHeatmap
      {...{ view, answers, ...range }}
      label={() => `${partLabel(part)} by rank and step`}
      onPick={(picked) => props.onPick(picked.firstStep)}
      diverging
      page={{ view }}
      empty={<p class="quiet">{partLabel(part)} was not recorded on these ranks.</p>}
    />
  );
  if (answers.cells === null) return heat;
  return (
    <section aria-label="Ranks beside each other">
      <div class="row">
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
          above the median rank of the same step, in % of its step time
        </span>
      </div>
      {heat}
    </section>
  );
}
