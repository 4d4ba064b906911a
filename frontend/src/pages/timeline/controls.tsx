/** The Timeline's switches: series, axis, phase, smoothing, scale. */

import { Popover } from "../../widgets/menu/menu";
import type { TimelineResponse } from "../../api/types.gen";
import { sourceLabel } from "../../model/words/source_label";
import { Choice } from "../shared/controls/choices";
import { XSwitch } from "../shared/controls/x_switch";
import { GROUP_WORDS, seriesGroups, seriesLabel } from "../shared/series/lines";
import { MOST_SMOOTHING, type TimelineParams } from "../shared/series/params";

export interface ControlsProps {
  readonly answer: TimelineResponse;
  readonly params: TimelineParams;
  readonly setParams: (
    changes: Readonly<Record<string, string | null>>,
    how?: "replace" | "push",
  ) => void;
}

export function Controls({ answer, params, setParams }: ControlsProps) {
  const { phases } = answer;
  return (
    <div class="row">
      <SeriesSelect
        answer={answer}
        onChange={(key) => setParams({ series: key }, "push")}
      />
      <XSwitch
        x={params.x}
        setX={(x) => {
          // A range of steps says nothing about time.
          setParams({ x, x0: null, x1: null }, "push");
        }}
      />
      <Popover label="View" button="View">
        {phases.length > 1 && (
          <Choice
            label="Phase"
            value={params.phase === "" ? (phases[0] ?? "") : params.phase}
            onChange={(value) =>
              setParams({ phase: value === phases[0] ? null : value }, "push")
            }
          >
            {phases.map((phase) => (
              <option key={phase} value={phase}>
                {phase}
              </option>
            ))}
          </Choice>
        )}
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

function SeriesSelect({
  answer,
  onChange,
}: {
  readonly answer: TimelineResponse;
  readonly onChange: (key: string) => void;
}) {
  const { available, absent, series } = answer;
  return (
    <label>
      <span class="off-screen">Series</span>
      <select
        class="timeline-series"
        value={series?.key ?? ""}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {seriesGroups(available).map(({ group, series: members }) => (
          <optgroup key={group} label={GROUP_WORDS[group]}>
            {members.map((one) => (
              <option key={one.key} value={one.key}>
                {seriesLabel(one, available)}
              </option>
            ))}
          </optgroup>
        ))}
        {absent.length > 0 && (
          <optgroup label="Not recorded">
            {absent.map((one) => (
              <option key={`${one.group} ${one.source} ${one.reason}`} disabled>
                {sourceLabel(one.source)}: {one.reason}
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </label>
  );
}
