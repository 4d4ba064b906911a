/** What is missing of a history, or odd about it, as a list. */

import { Icon } from "../../../widgets/icon/icon";
import type { HistoryNote } from "./words";

export function HistoryNotes(props: {
  readonly notes: readonly HistoryNote[];
  /** Only these. */
  readonly tone: HistoryNote["tone"];
}) {
  const { tone } = props;
  const notes = props.notes.filter((one) => one.tone === tone);
  if (notes.length === 0) return null;
  return (
    <ul class="history-notes">
      {notes.map(({ text }) => (
        <li key={text} class={tone === "warn" ? "is-warn" : "quiet"}>
          <Icon name={tone === "warn" ? "warning" : "info"} sizePx={14} />
          {text}
        </li>
      ))}
    </ul>
  );
}
