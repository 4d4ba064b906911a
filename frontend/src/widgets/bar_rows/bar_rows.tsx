import type { ComponentChildren } from "preact";
import "./bar_rows.css";

export interface BarRow {
  readonly key: string;
  readonly label: ComponentChildren;
  readonly title: string;
  /** Of the whole: the width of its bar. */
  readonly share: number;
  readonly background: string;
  readonly value: string;
  /** With every digit. */
  readonly exact: string;
  readonly note: string;
}

/** Parts of one whole, each with its bar: shares are seen before numbers are read. */
export function BarRows(props: {
  readonly label: string;
  readonly rows: readonly BarRow[];
}) {
  return (
    <ul class="bar-rows" aria-label={props.label}>
      {props.rows.map(
        ({ key, label, title, share, background, value, exact, note }) => (
          <li key={key} title={title}>
            <span class="cut">{label}</span>
            <span class="bar-row-track">
              <span style={{ width: `${(100 * share).toFixed(2)}%`, background }} />
            </span>
            <span class="num" title={exact}>
              {value}
            </span>
            <small class="quiet">{note}</small>
          </li>
        ),
      )}
    </ul>
  );
}
