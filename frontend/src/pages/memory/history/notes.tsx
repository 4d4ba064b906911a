/** What is missing of a history, or odd about it, as a list. */

import type { ByteUnit } from "../../../base/bytes";
import { Icon } from "../../../widgets/icon/icon";
import type { OpenHistory } from "./frame";
import { historyNotes, type HistoryNote } from "./words";

export function HistoryNotes(props: {
  readonly open: OpenHistory;
  readonly byteUnit: ByteUnit;
  /** Only these. */
  readonly tone: HistoryNote["tone"];
}) {
  const { facts, device } = props.open;
  const notes = historyNotes(facts, device, props.byteUnit).filter(
    ({ tone }) => tone === props.tone,
  );
  if (notes.length === 0) return null;
  return (
    <ul class="small">
      {notes.map(({ text, tone }) => (
        <li key={text} class={tone === "warn" ? "" : "quiet"}>
          <span class={`tone-${tone}`}>
            <Icon name={tone === "warn" ? "warning" : "info"} sizePx={14} />
          </span>{" "}
          {text}
        </li>
      ))}
    </ul>
  );
}
