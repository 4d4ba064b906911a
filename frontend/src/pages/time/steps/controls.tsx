/** The switches of the Steps view: whose steps, axis, phase. */

import type { StepsResponse } from "../../../api/types.gen";
import { Choice, Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { XSwitch } from "../../shared/controls/x_switch";
import type { StepsParams } from "./params";

const OF_WORDS = {
  worst: ["Slowest rank", "Of each step, the rank that took longest"],
  median: ["Median rank", "Of each step, the median rank"],
} as const;

export function Controls(props: {
  readonly answer: StepsResponse;
  readonly params: StepsParams;
  readonly setParams: ViewProps["setParams"];
}) {
  const { answer, params, setParams } = props;
  const { phases } = answer;
  return (
    <div class="steps-controls on-hover">
      {answer.of !== "rank" && (
        <Segmented
          label="Whose steps are shown"
          options={["worst", "median"] as const}
          chosen={params.of}
          words={(option) => OF_WORDS[option]}
          onChoose={(of) => setParams({ of: of === "worst" ? null : of }, "push")}
        />
      )}
      <XSwitch
        x={params.x}
        setX={(x) => {
          // A range of steps says nothing about time.
          setParams({ x, x0: null, x1: null }, "push");
        }}
      />
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
    </div>
  );
}
