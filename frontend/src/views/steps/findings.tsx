/** What slows the training down, in plain words, each with its evidence. */

import type { StepFinding } from "../../api/types.gen";
import { formatQuantity } from "../../model/quantity";
import { Icon } from "../../widgets/icon/icon";

export function Findings(props: {
  readonly findings: readonly StepFinding[];
  readonly chooseRank: (rank: number) => void;
  readonly pinStep: (step: number) => void;
}) {
  if (props.findings.length === 0) return null;
  return (
    <section class="steps-findings" aria-label="What slows the steps down">
      {props.findings.map((one) => (
        <article key={one.key} class="steps-finding">
          <span class="failure-sign">
            <Icon name="warning" sizePx={18} />
          </span>
          <div>
            <p>
              <strong>{one.sentence}</strong>
            </p>
            <details>
              <summary>What to try, and what this rests on</summary>
              <ul>
                {one.advice.map((text) => (
                  <li key={text}>{text}</li>
                ))}
              </ul>
              <table class="data-table">
                <tbody>
                  {one.evidence.map(({ key, label, value, unit, scope }) => (
                    <tr key={key}>
                      <th scope="row">{label}</th>
                      <td>{formatQuantity(value, unit)}</td>
                      <td class="quiet">{scope}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </details>
          </div>
          <div class="steps-finding-actions">
            {one.step !== null && (
              <button
                type="button"
                class="button"
                onClick={() => {
                  if (one.step !== null) props.pinStep(one.step);
                }}
              >
                Show step {one.step}
              </button>
            )}
            {one.key === "straggler" && one.rank !== null && (
              <button
                type="button"
                class="button"
                onClick={() => {
                  if (one.rank !== null) props.chooseRank(one.rank);
                }}
              >
                Show rank {one.rank}
              </button>
            )}
          </div>
        </article>
      ))}
    </section>
  );
}
