/** The switches of the Steps view: whose steps, axis, phase; and its numbers in short. */

import type { StepsResponse, StragglersResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { formatQuantity } from "../../../model/words/quantity";
import { partHelp } from "../../../model/words/step_part";
import { Choice, Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { XSwitch } from "../../shared/controls/x_switch";
import type { StepsParams } from "./params";
import { flopsWords, rateText, RATE_WORDS } from "./rates";

const OF_WORDS = {
  worst: ["Slowest rank", "Of each step, the rank that took longest"],
  median: ["Middle rank", "Of each step, the rank in the middle"],
} as const;

export function Controls(props: {
  readonly answer: StepsResponse;
  readonly params: StepsParams;
  readonly setParams: ViewProps["setParams"];
}) {
  const { answer, params, setParams } = props;
  const { phases } = answer;
  return (
    <div class="steps-controls">
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

function exactRate(value: number | null): string {
  return value === null ? "not known" : value.toLocaleString("en-US", EXACT);
}

const EXACT = { maximumFractionDigits: 6 } as const;

/** The numbers that are asked for first; each says of whom it is. */
export function Figures(props: {
  readonly answer: StepsResponse;
  readonly stragglers: StragglersResponse | null;
}) {
  const { answer, stragglers } = props;
  const usual = stragglers?.stepSeconds ?? null;
  const rates = answer.rates.filter(({ key }) => key !== "flops");
  const own = `rank ${answer.rank ?? "–"}`;
  return (
    <dl class="steps-figures">
      {usual !== null && (
        <div title={`${partHelp("step")} Median over the steps; ${usual} s.`}>
          <dt>Step time</dt>
          <dd>{formatSeconds(usual)}</dd>
          <dd class="quiet">
            {stragglers !== null && stragglers.numRanks > 1 ? "middle rank" : own},
            median
          </dd>
        </div>
      )}
      {rates.map(({ key, median, summedMedian }) => (
        <div
          key={key}
          title={`${key === "mfu" ? flopsWords(answer) : RATE_WORDS[key][1]} Median over the steps; ${exactRate(summedMedian ?? median)}.`}
        >
          <dt>{RATE_WORDS[key][0]}</dt>
          <dd>{rateText(summedMedian ?? median, key, true)}</dd>
          <dd class="quiet">
            {summedMedian === null
              ? own
              : `${key === "mfu" ? "mean of" : "all"} ${formatInteger(answer.numSummed)} ranks; ${own}: ${
                  key === "mfu"
                    ? formatQuantity(median, "percent")
                    : rateText(median, key, true)
                }`}
          </dd>
        </div>
      ))}
    </dl>
  );
}
