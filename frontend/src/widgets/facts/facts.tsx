import type { ComponentChildren } from "preact";
import "./facts.css";

/** null values are left out; `note` is fainter. */
export type FactRows = readonly (readonly [
  name: ComponentChildren,
  value: ComponentChildren | null,
  note?: ComponentChildren,
])[];

/** Names and their values; what has headings, or is sorted, is a `RowTable`. */
export function Facts(props: {
  readonly rows: FactRows;
  readonly label?: string;
  /** Values are numbers: they end in one line, and notes begin in one. */
  readonly numeric?: boolean;
}) {
  const { rows, label, numeric = false } = props;
  return (
    <dl class={numeric ? "facts is-numeric" : "facts"} aria-label={label}>
      {rows.map(
        ([name, value, note], place) =>
          value !== null && (
            <div key={place}>
              <dt>{name}</dt>
              <dd>
                {value} {!numeric && <Note note={note} />}
              </dd>
              {numeric && (
                <dd>
                  <Note note={note} />
                </dd>
              )}
            </div>
          ),
      )}
    </dl>
  );
}

function Note({ note }: { readonly note: ComponentChildren }) {
  return note === undefined ? null : <span class="quiet">{note}</span>;
}
