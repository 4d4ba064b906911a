/** What was recorded, and what was not with the reason and the remedy. */

import type { Recorded } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { sentenceCase } from "../../model/column_label";
import { Icon, type IconName } from "../../widgets/icon/icon";
import { groupRecorded, type MissingGroup } from "./recorded_groups";

const LOOKS: Readonly<
  Record<
    Recorded["status"],
    { readonly word: string; readonly icon: IconName; readonly tone: string }
  >
> = {
  recorded: { word: "Recorded", icon: "check", tone: "status-ok" },
  absent: { word: "Not available", icon: "minus", tone: "status-quiet" },
  off: { word: "Switched off", icon: "minus", tone: "status-quiet" },
  failed: { word: "Failed", icon: "cross", tone: "status-bad" },
};

export function RecordedPanels({
  recorded,
}: {
  readonly recorded: readonly Recorded[];
}) {
  const { present, missing } = groupRecorded(recorded);
  return (
    <>
      <section class="panel" aria-labelledby="recorded-title">
        <header class="panel-head">
          <h2 id="recorded-title">Recorded</h2>
        </header>
        {present.length === 0 ? (
          <p class="quiet">No rank has said yet what it records.</p>
        ) : (
          <ul class="recorded">
            {present.map((one) => (
              <li key={one.source}>
                <span class="status-ok">
                  <Icon name="check" />
                  {sentenceCase(one.source)}
                </span>
                <span class="quiet">
                  {formatInteger(one.numRanks)} {one.numRanks === 1 ? "rank" : "ranks"}
                  {one.cost !== "" && ` · ${one.cost}`}
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
      {missing.length > 0 && (
        <section class="panel" aria-labelledby="missing-title">
          <header class="panel-head">
            <h2 id="missing-title">Not recorded</h2>
          </header>
          <MissingTable missing={missing} />
        </section>
      )}
    </>
  );
}

function MissingTable({ missing }: { readonly missing: readonly MissingGroup[] }) {
  return (
    <div class="table-scroll">
      <table class="data-table">
        <thead>
          <tr>
            <th scope="col">Sources</th>
            <th scope="col">Status</th>
            <th scope="col" class="num">
              Ranks
            </th>
            <th scope="col">Why</th>
            <th scope="col">What to do</th>
          </tr>
        </thead>
        <tbody>
          {missing.map((group) => (
            <MissingRow key={`${group.status} ${group.sources.join()}`} group={group} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function MissingRow({ group }: { readonly group: MissingGroup }) {
  const look = LOOKS[group.status];
  return (
    <tr>
      <th scope="row" class="source">
        {group.sources.join(", ")}
      </th>
      <td>
        <span class={look.tone}>
          <Icon name={look.icon} />
          {look.word}
        </span>
      </td>
      <td class="num">{formatInteger(group.numRanks)}</td>
      <td>{group.reason}</td>
      <td class="quiet">{group.remedy}</td>
    </tr>
  );
}
