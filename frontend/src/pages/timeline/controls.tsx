import { Popover } from "../../widgets/menu/menu";
import type { TimelineResponse } from "../../api/types.gen";
import { Choice } from "../shared/controls/choices";
import { PhaseChoice, XSwitch } from "../shared/controls/x_switch";
import { seriesOptions } from "../shared/series/lines";
import type { ViewProps } from "../shared/view_props";
import { MOST_SMOOTHING, type TimelineParams } from "../shared/series/params";

export function Controls(props: {
  readonly answer: TimelineResponse;
  readonly params: TimelineParams;
  readonly setParams: ViewProps["setParams"];
}) {
  const { answer, params, setParams } = props;
  return (
    <div class="row">
      <Choice
        label="Series"
        value={answer.series?.key ?? ""}
        of={seriesOptions(answer.available)}
        onChange={(key) => setParams({ series: key }, "push")}
      />
      <XSwitch x={params.x} setParams={setParams} />
      <Popover label="View" button="View">
        <PhaseChoice {...{ setParams }} phase={params.phase} phases={answer.phases} />
        <label class="timeline-smoothing">
          <span class="quiet">Smoothing</span>{" "}
          <input
            type="range"
            min="0"
            max={MOST_SMOOTHING}
            step="0.01"
            value={params.smoothing}
            onInput={(event) => {
              const { value } = event.currentTarget;
              setParams({ smooth: Number(value) > 0 ? value : null });
            }}
          />
          <output>
            {params.smoothing === 0 ? "off" : params.smoothing.toFixed(2)}
          </output>
        </label>
        <label>
          <input
            type="checkbox"
            checked={params.logScale}
            onChange={() => setParams({ log: params.logScale ? null : "1" })}
          />{" "}
          Log scale
        </label>
      </Popover>
    </div>
  );
}
