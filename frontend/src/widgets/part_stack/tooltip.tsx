/** The step under the pointer: its parts in words and numbers. */

import { formatInteger } from "../../base/bytes";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { partLabel } from "../../model/words/step_part";
import { ChartTip, StackRows, type TipPlace } from "../tip/chart_tip";
import { profiledIn } from "./layout";
import type { StackedSteps } from "./types";

const PROFILER_DID = {
  start: "The profiler started in this step",
  stop: "The profiler stopped in this step",
  save: "The profiler saved its trace in this step",
  capture: "A capture was taken in this step",
} as const;

export interface PartTipProps {
  readonly answer: StackedSteps;
  readonly colours: readonly string[];
  readonly column: number;
  readonly at: TipPlace;
}

/** `step 1,204`, or which of several steps is shown. */
export function columnWords(answer: StackedSteps, column: number): string {
  const shown = formatInteger(answer.shownStep[column] ?? NaN);
  if (answer.stepsPerColumn <= 1) return `step ${shown}`;
  const first = answer.firstStep[column] ?? NaN;
  const last = first + answer.stepsPerColumn - 1;
  const among = `${formatInteger(first)}–${formatInteger(last)}`;
  return answer.exact
    ? `step ${shown}, the slowest of ${among}`
    : `the slowest of steps ${among}`;
}

export function PartTip(props: PartTipProps) {
  const { answer, column } = props;
  const total = answer.seconds[column] ?? NaN;
  const did = profiledIn(answer, column);
  return (
    <ChartTip at={props.at}>
      <div class="chart-tip-x">
        {columnWords(answer, column)} · rank {answer.columnRank[column] ?? "–"}
      </div>
      <div class="chart-exact">{formatExact(total, "seconds")}</div>
      <StackRows
        total={{ name: "Step time", value: total, colour: null }}
        parts={answer.parts.map(({ name, seconds }, i) => ({
          name: partLabel(name),
          value: seconds[column] ?? NaN,
          colour: props.colours[i] ?? null,
        }))}
        text={(value) => formatQuantity(value, "seconds")}
        exact={(value) => formatQuantity((100 * value) / total, "percent")}
      />
      {did !== null && (
        <div class="chart-note">{PROFILER_DID[did]}: not counted in medians.</div>
      )}
      {!answer.exact && (
        <div class="chart-note">Parts are estimated here; zoom in for the step.</div>
      )}
    </ChartTip>
  );
}
