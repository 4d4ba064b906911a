/** In the inspector beside a picture, else at the page's foot. */

import type { ComponentChildren } from "preact";
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
