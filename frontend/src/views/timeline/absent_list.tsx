import type { AbsentSeries } from "../../api/types.gen";
import { asSentence, sourceLabel } from "../../model/source_label";
import { GROUP_WORDS } from "./lines";

/** What could be drawn and is not there, why, and what to do about it. */
export function AbsentList({ absent }: { readonly absent: readonly AbsentSeries[] }) {
  return (
    <details class="timeline-absent">
      <summary>
        {absent.length === 1
          ? "1 source was not recorded"
          : `${absent.length} sources were not recorded`}
      </summary>
      <dl>
        {absent.map((one) => (
          <div key={`${one.group} ${one.source} ${one.reason}`}>
            <dt>
              {sourceLabel(one.source)}
              <span class="quiet"> {GROUP_WORDS[one.group]}</span>
            </dt>
            <dd>
              {asSentence(one.reason)}{" "}
              {one.remedy !== "" && <span class="quiet">{asSentence(one.remedy)}</span>}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
