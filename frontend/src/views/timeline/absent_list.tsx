import type { AbsentSeries } from "../../api/types.gen";
import { sentenceCase } from "../../model/column_label";
import { GROUP_WORDS } from "./lines";

/** What could be drawn and is not there, why, and what to do about it. */
export function AbsentList({ absent }: { readonly absent: readonly AbsentSeries[] }) {
  return (
    <details class="timeline-absent">
      <summary>{absent.length} sources were not recorded</summary>
      <dl>
        {absent.map((one) => (
          <div key={`${one.group} ${one.source} ${one.reason}`}>
            <dt>
              {sentenceCase(one.source)}
              <span class="quiet"> {GROUP_WORDS[one.group]}</span>
            </dt>
            <dd>
              {one.reason}{" "}
              {one.remedy !== "" && <span class="quiet">{one.remedy}</span>}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
