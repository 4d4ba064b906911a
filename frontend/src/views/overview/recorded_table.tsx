/** What was recorded and what was not, with the reason and the remedy. */

import type { Recorded } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { sentenceCase } from "../../model/column_label";
import { Icon, type IconName } from "../../widgets/icon/icon";

type Status = Recorded["status"];

const LOOKS: Readonly<
  Record<
    Status,
    { readonly word: string; readonly icon: IconName; readonly tone: string }
  >
> = {
  recorded: { word: "Recorded", icon: "check", tone: "status-ok" },
  absent: { word: "Not available", icon: "minus", tone: "status-quiet" },
  off: { word: "Switched off", icon: "minus", tone: "status-quiet" },
  failed: { word: "Failed", icon: "cross", tone: "status-bad" },
};

const STATUS_ORDER: readonly Status[] = ["failed", "recorded", "absent", "off"];

export function RecordedTable({
  recorded,
}: {
  readonly recorded: readonly Recorded[];
}) {
  const rows = [...recorded].sort(
    (a, b) => STATUS_ORDER.indexOf(a.status) - STATUS_ORDER.indexOf(b.status),
  );
  return (
    <section class="panel" aria-labelledby="recorded-title">
      <header class="panel-head">
        <h2 id="recorded-title">What was recorded</h2>
      </header>
      {rows.length === 0 ? (
        <p class="quiet">No rank has said yet what it records.</p>
      ) : (
        <div class="table-scroll">
          <table class="data-table">
            <thead>
              <tr>
                <th scope="col">Source</th>
                <th scope="col">Status</th>
                <th scope="col" class="num">
                  Ranks
                </th>
                <th scope="col">Why, and what to do</th>
                <th scope="col">Cost</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={`${row.source} ${row.status} ${row.reason}`} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ row }: { readonly row: Recorded }) {
  const look = LOOKS[row.status];
  return (
    <tr>
      <th scope="row" class="source">
        {sentenceCase(row.source)}
      </th>
      <td>
        <span class={look.tone}>
          <Icon name={look.icon} />
          {look.word}
        </span>
      </td>
      <td class="num">{formatInteger(row.numRanks)}</td>
      <td>
        {row.reason}
        {row.reason !== "" && row.remedy !== "" && <br />}
        {row.remedy !== "" && <span class="quiet">{row.remedy}</span>}
      </td>
      <td class="quiet">{row.cost}</td>
    </tr>
  );
}
