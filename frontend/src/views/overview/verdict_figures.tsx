/** What was asked, free, live and there, side by side. */

import type { OutOfMemory } from "../../api/types.gen";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../base/bytes";
import { figures } from "./verdict_words";

export function VerdictFigures(props: {
  readonly one: OutOfMemory;
  readonly byteUnit: ByteUnit;
}) {
  return (
    <dl class="oom-figures">
      {figures(props.one).map((figure) => (
        <div key={figure.key}>
          <dt>{figure.title}</dt>
          <dd title={formatBytesExact(figure.value)}>
            {formatBytes(figure.value, props.byteUnit)}
            {figure.note !== "" && <small> {figure.note}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
