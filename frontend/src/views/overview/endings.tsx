/** Ranks that did not end in order: how, when, and where to look. */

import type { RankEnding, RankEndings } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { formatInstant } from "../../base/durations";
import { Status, type StatusLook } from "../../widgets/status/status";

const LOOKS: Readonly<Record<RankEnding["how"], StatusLook>> = {
  exception: { word: "Exception", icon: "cross", tone: "bad" },
  signal: { word: "Signal", icon: "warning", tone: "warn" },
  lost: { word: "Lost", icon: "warning", tone: "bad" },
};

export function Endings({ endings }: { readonly endings: RankEndings }) {
  const { ranks, numException, numSignal, numLost } = endings;
  const left = numException + numSignal + numLost - ranks.length;
  const advice = [...new Set(ranks.map((one) => one.advice))].filter(Boolean);
  return (
    <section class="panel" aria-labelledby="endings-title">
      <header class="panel-head">
        <h2 id="endings-title">How it ended</h2>
      </header>
      <div class="table-scroll">
        <table class="data-table">
          <tbody>
            {ranks.map((one) => (
              <tr key={one.rank}>
                <td>
                  <Status look={LOOKS[one.how]} />
                </td>
                <td class="nowrap">{formatInstant(one.timeMs)}</td>
                <td>{one.sentence}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {left > 0 && (
        <p class="quiet endings-note">And {formatInteger(left)} more like these.</p>
      )}
      {advice.map((words) => (
        <p class="endings-note" key={words}>
          {words}
        </p>
      ))}
    </section>
  );
}
