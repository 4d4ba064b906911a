/** The step under the pointer: its parts in words and numbers. */

import { formatInteger } from "../../base/bytes";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { partLabel } from "../../model/words/step_part";
import type { StackedSteps } from "./types";

export interface PartTipProps {
  readonly answer: StackedSteps;
  readonly colours: readonly string[];
  readonly column: number;
  readonly leftPx: number;
  readonly topPx: number;
  readonly flip: boolean;
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
  const { answer, column, leftPx, flip } = props;
  const side = flip
    ? { right: `calc(100% - ${leftPx - 14}px)` }
    : { left: `${leftPx + 14}px` };
  const total = answer.seconds[column] ?? NaN;
  const row = (name: string, value: number, colour: string | null) => (
    <tr key={name}>
      <td>
        {colour !== null && <span class="part-swatch" style={{ background: colour }} />}
      </td>
      <td>{name}</td>
      <td>{formatQuantity(value, "seconds")}</td>
      <td class="chart-exact">{formatQuantity((100 * value) / total, "percent")}</td>
    </tr>
  );
  return (
    <div
      class="chart-tip"
      style={{ ...side, top: `${props.topPx}px` }}
      aria-hidden="true"
    >
      <div class="chart-tip-x">
        {columnWords(answer, column)} · rank {answer.columnRank[column] ?? "–"}
      </div>
      <div class="chart-exact">{formatExact(total, "seconds")}</div>
      <table>
        <tbody>
          {row("Step time", total, null)}
          {answer.parts
            .map(({ name, seconds }, i) => ({
              name,
              value: seconds[column] ?? NaN,
              colour: props.colours[i] ?? null,
            }))
            // As they are stacked: the topmost first.
            .reverse()
            .filter(({ value }) => value > 0)
            .map(({ name, value, colour }) => row(partLabel(name), value, colour))}
        </tbody>
      </table>
      {!answer.exact && (
        <div class="chart-note">Parts are estimated here; zoom in for the step.</div>
      )}
    </div>
  );
}
