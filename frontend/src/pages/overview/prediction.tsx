/** Whether a run on a virtual GPU would fit a real one, and what that is made of. */

import type { Prediction } from "../../api/types.gen";
import { formatByteRange, type ByteUnit } from "../../base/bytes";
import { asSentence } from "../../model/words/source_label";
import { PlainTable } from "../../widgets/row_table/plain_table";
import { Status, type StatusLook } from "../../widgets/status/status";

const LOOKS: Readonly<Record<Prediction["fit"], StatusLook>> = {
  fits: { word: "Fits", icon: "check", tone: "ok" },
  "does not fit": { word: "Does not fit", icon: "cross", tone: "bad" },
  "too close to call": { word: "Too close to call", icon: "warning", tone: "warn" },
  "cannot say": { word: "Cannot say", icon: "info", tone: "quiet" },
};

export function PredictionLedger(props: {
  readonly prediction: Prediction;
  readonly byteUnit: ByteUnit;
}) {
  const { fit, sentences, rows } = props.prediction;
  return (
    <section class="panel prediction" aria-labelledby="prediction-title">
      <header class="panel-head">
        <h2 id="prediction-title">Will it fit?</h2>
        <Status look={LOOKS[fit]} />
      </header>
      {sentences.map((sentence) => (
        <p key={sentence}>{asSentence(sentence)}</p>
      ))}
      <PlainTable
        label="What it is made of"
        columns={[
          { title: "", cell: (row) => strong(row.isTotal, row.label) },
          {
            title: "",
            look: "num",
            cell: ({ lowBytes: low, highBytes: high, isTotal }) =>
              strong(
                isTotal,
                low === null || high === null
                  ? "–"
                  : formatByteRange(low, high, props.byteUnit),
              ),
          },
          { title: "", look: "quiet", cell: ({ mark }) => mark },
          { title: "", look: "quiet", cell: ({ source }) => source },
        ]}
        rows={rows}
      />
    </section>
  );
}

function strong(isTotal: boolean, text: string) {
  return isTotal ? <b>{text}</b> : text;
}
