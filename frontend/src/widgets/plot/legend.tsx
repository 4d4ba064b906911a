/** The colours of a chart by name, and what is said beside them. */

import type { ComponentChildren } from "preact";
import type { LegendItem } from "../export/figure";

export function Legend(props: {
  readonly items: readonly (LegendItem & {
    /** Shown when pointed at. */
    readonly help?: string;
    /** Said after the name, fainter. */
    readonly note?: string;
  })[];
  readonly children?: ComponentChildren;
}) {
  return (
    <ul class="plot-legend">
      {props.items.map(({ label, colour, help, note }) => (
        <li key={label} title={help}>
          <span class="swatch" style={{ background: colour }} />
          {label}
          {note !== undefined && <span class="quiet"> {note}</span>}
        </li>
      ))}
      {props.children}
    </ul>
  );
}
