import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { formatInteger } from "../../base/bytes";

/** Series whose value never changes: folded, one click opens them. */
export function FlatSeries(props: {
  readonly count: number;
  readonly children: ComponentChildren;
}) {
  const { count, children } = props;
  const [isOpen, setOpen] = useState(false);
  if (count === 0) return null;
  // eslint-disable-next-line memboard/counted-nouns -- one series, two series
  const summary = `${formatInteger(count)} flat series`;
  return (
    <details
      class="flat-series"
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>{summary}</summary>
      {isOpen && children}
    </details>
  );
}
