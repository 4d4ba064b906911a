import type { StragglersResponse } from "../../../api/types.gen";
import { Choice, type Option } from "../../shared/controls/choices";
import { RankHeatmap, type SharedRange } from "../../shared/heat_answers";
import type { ViewProps } from "../../shared/view_props";
import type { StepsParams } from "./params";

export function StepMap(props: {
  readonly view: ViewProps;
  readonly params: StepsParams;
  readonly data: StragglersResponse;
  readonly shared: SharedRange;
  readonly onPick: (step: number) => void;
  readonly px: number;
}) {
  const { view, params, data } = props;
  const options: readonly Option[] = [
    ["step", "Step time"],
    ...data.parts.map(({ name, label }): Option => [name, label]),
  ];
  const named = (name: string | null) => options.find(([key]) => key === name);
  // By default the part that distinguishes the ranks.
  const usual = named(data.part)?.[0] ?? "step";
  const [part, label] = named(params.heat) ?? named(data.part) ?? ["step", "Step time"];
  return (
    <section aria-label="Ranks beside each other">
      <div class="row">
        <Choice
          label="Compare"
          value={part}
          of={options}
          onChange={(value) =>
            view.setParams({ heat: value === usual ? null : value }, "push")
          }
        />
        <span class="quiet">
          above the median rank of the same step, in % of its step time
        </span>
      </div>
      <RankHeatmap
        view={view}
        route="step_heatmap"
        subject={{ phase: params.phase, part }}
        px={props.px}
        shared={params.x === "step" ? props.shared : null}
        label={() => `${label} by rank and step`}
        onPick={(_rank, { firstStep }) => props.onPick(firstStep)}
        diverging
        page={{ view }}
        empty={<p class="quiet">{label} was not recorded on these ranks.</p>}
      />
    </section>
  );
}
