/** Whether a run on a virtual GPU would fit a real one, and what that is made of. */

import type { Prediction } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { Status } from "../../widgets/status/status";
import { fitLook, fitSentences, ledgerRows } from "./prediction_rows";

export function PredictionLedger(props: {
  readonly prediction: Prediction;
  readonly byteUnit: ByteUnit;
}) {
  const { prediction, byteUnit } = props;
  return (
    <section class="panel prediction" aria-labelledby="prediction-title">
      <header class="panel-head">
        <h2 id="prediction-title">Will it fit?</h2>
        <Status look={fitLook(prediction)} />
      </header>
      {fitSentences(prediction).map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      <div class="table-scroll">
        <table class="data-table">
          <tbody>
            {ledgerRows(prediction, byteUnit).map((row) => (
              <tr key={row.label} class={row.isTotal ? "total" : ""}>
                <th scope="row">{row.label}</th>
                <td class="num">{row.size}</td>
                <td class="quiet nowrap">{row.mark}</td>
                <td class="quiet">{row.source}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
