/** What was recorded, and what was not with the reason and the remedy. */

import type { Recorded } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { Icon } from "../../widgets/icon/icon";
import { Status, type StatusLook } from "../../widgets/status/status";
import { Tip } from "../../widgets/tip/tip";
import { groupRecorded, type MissingGroup } from "./recorded_groups";

const LOOKS: Readonly<Record<MissingGroup["status"], StatusLook>> = {
  recorded: { word: "Recorded", icon: "check", tone: "ok" },
  absent: { word: "Not available", icon: "minus", tone: "quiet" },
  off: { word: "Switched off", icon: "minus", tone: "quiet" },
  elsewhere: { word: "On another rank", icon: "check", tone: "quiet" },
  failed: { word: "Failed", icon: "cross", tone: "bad" },
};

export function RecordedPanels(props: {
  readonly recorded: readonly Recorded[];
  /** What all ranks record, where `recorded` is one rank's. */
  readonly whole: readonly Recorded[];
  /** Ranks that `recorded` speaks of. */
  readonly numRanks: number;
}) {
  const { numRanks } = props;
  const { present, missing } = groupRecorded(props.recorded, props.whole);
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
                <Status look={{ ...LOOKS.recorded, word: one.source }} />
                <span class="quiet">
                  {ranksOf(one.numRanks, numRanks)}
                  {one.elsewhere !== "" && (
                    <Tip text={one.elsewhere} focusable class="caveat">
                      <Icon name="info" sizePx={14} />
                      <span class="off-screen">{one.elsewhere}</span>
                    </Tip>
                  )}
                  {numRanks > 1 && one.cost !== "" && " · "}
                  {one.cost}
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
          <MissingTable missing={missing} numRanks={numRanks} />
        </section>
      )}
    </>
  );
}

/** "all ranks" is the rule and needs no number; of one rank there is nothing to say. */
function ranksOf(count: number, total: number): string {
  if (total === 1) return "";
  if (count >= total) return "all ranks";
  return `${formatInteger(count)} of ${formatInteger(total)} ranks`;
}

function MissingTable({
  missing,
  numRanks,
}: {
  readonly missing: readonly MissingGroup[];
  readonly numRanks: number;
}) {
  return (
    <div class="table-scroll">
      <table class="data-table">
        <thead>
          <tr>
            <th scope="col">Sources</th>
            <th scope="col">Status</th>
            {numRanks > 1 && <th scope="col">On</th>}
            <th scope="col">Why</th>
            <th scope="col">What to do</th>
          </tr>
        </thead>
        <tbody>
          {missing.map((group) => (
            <MissingRow
              key={`${group.status} ${group.sources.join()}`}
              group={group}
              numRanks={numRanks}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function MissingRow({
  group,
  numRanks,
}: {
  readonly group: MissingGroup;
  readonly numRanks: number;
}) {
  const look = LOOKS[group.status];
  return (
    <tr>
      <th scope="row" class="source">
        {group.sources.join(", ")}
      </th>
      <td>
        <Status look={look} />
      </td>
      {numRanks > 1 && <td class="nowrap">{ranksOf(group.numRanks, numRanks)}</td>}
      <td>{group.reason}</td>
      <td class="quiet">{group.remedy}</td>
    </tr>
  );
}
