/** The bottom drawer: what is chosen, in full. */

import type { ComponentChildren } from "preact";
import { CloseDetails } from "./close_details";
import "./drawer.css";

export function Drawer(props: {
  readonly label: string;
  readonly title: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly close: () => void;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="drawer" aria-label={props.label}>
      <header>
        <h2>{props.title}</h2>
        {props.actions}
        <CloseDetails close={props.close} />
      </header>
      {props.children}
    </section>
  );
}
