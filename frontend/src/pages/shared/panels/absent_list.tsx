import { Fragment } from "preact";
import { counted } from "../../../base/bytes";
import { asSentence, sourceLabel } from "../../../model/words/source_label";

interface AbsentItem {
  readonly source: string;
  readonly reason: string;
  readonly remedy: string;
  readonly note?: string;
}

export function AbsentList({ absent }: { readonly absent: readonly AbsentItem[] }) {
  if (absent.length === 0) return null;
  return (
    <details>
      <summary>{counted(absent.length, "source")} not recorded</summary>
      <dl class="facts">
        {absent.map(({ source, note, reason, remedy }) => (
          <Fragment key={`${note ?? ""} ${source} ${reason}`}>
            <dt>
              {sourceLabel(source)}
              {note !== undefined && <span class="quiet"> {note}</span>}
            </dt>
            <dd>
              {asSentence(reason)}{" "}
              {remedy !== "" && <span class="quiet">{asSentence(remedy)}</span>}
            </dd>
          </Fragment>
        ))}
      </dl>
    </details>
  );
}
