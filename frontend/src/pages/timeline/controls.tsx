import { Popover } from "../../widgets/menu/menu";
import type { TimelineResponse } from "../../api/types.gen";
import { Check, Choice } from "../shared/controls/choices";
import { usePageState } from "../shared/page_state";
import { PhaseChoice, XSwitch } from "../shared/controls/x_switch";
import { GROUP_WORDS } from "../shared/series/lines";
import type { ViewProps } from "../shared/view_props";
import { MOST_SMOOTHING, TIMELINE } from "../shared/series/params";

export function Controls(props: {
  readonly answer: TimelineResponse;
  readonly view: ViewProps;
}) {
  const { answer, view } = props;
  const [params, setState] = usePageState(view, TIMELINE);
  return (
    <div class="row">
      <Choice
        label="Series"
        value={answer.series?.key ?? ""}
        of={[...answer.available]
          .sort((a, b) => Number(a.isFlat) - Number(b.isFlat))
          .map(({ key, label, group, isFlat }) => [
            key,
            label,
            isFlat ? "Flat" : GROUP_WORDS[group],
          ])}
        onChange={(series) => setState({ series }, "push")}
      />
      <XSwitch view={view} />
      <Popover label="View" button="View">
        <PhaseChoice view={view} phase={params.phase} phases={answer.phases} />
        <label class="timeline-smoothing">
          <span class="quiet">Smoothing</span>{" "}
          <input
            type="range"
            min="0"
            max={MOST_SMOOTHING}
            step="0.01"
            value={params.smoothing}
            onInput={({ currentTarget }) =>
              setState({ smoothing: currentTarget.valueAsNumber })
            }
          />
          <output>
            {params.smoothing === 0 ? "off" : params.smoothing.toFixed(2)}
          </output>
        </label>
        <Check
          label="Log scale"
          checked={params.logScale}
          onChange={() => setState({ logScale: !params.logScale })}
        />
      </Popover>
    </div>
  );
}
