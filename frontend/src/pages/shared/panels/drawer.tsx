/** In the inspector beside a picture, else at the page's foot. */

import { Fragment, type ComponentChildren } from "preact";
import { IconButton } from "../../../widgets/icon/icon";
import "./inspector.css";

export function Drawer(props: {
  readonly label: string;
  readonly title: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly close: () => void;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="drawer" aria-label={props.label}>
      <header class="row">
        <h2>{props.title}</h2>
        {props.actions}
        <CloseDetails close={props.close} />
      </header>
      {props.children}
    </section>
  );
}

/** null values are left out; `note` is fainter. */
export type FactRows = readonly (readonly [
  name: string,
  value: ComponentChildren | null,
  note?: string,
])[];

export function Facts({ rows }: { readonly rows: FactRows }) {
  return (
    <dl class="facts small">
      {rows.map(
        ([name, value, note]) =>
          value !== null && (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>
                {value} {note !== undefined && <span class="quiet">{note}</span>}
              </dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

export function CloseDetails({ close }: { readonly close: () => void }) {
  return (
    <IconButton
      icon="cross"
      label="Close the details"
      title="Close the details (Esc)"
      onClick={close}
    />
  );
}
