/** A button that opens a small panel of controls; Escape and a press outside close it. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { useOutside } from "./use_outside";
import "./menu.css";

export function Popover(props: {
  /** Of the button and of the panel. */
  readonly label: string;
  readonly button: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLSpanElement>(null);
  useOutside(root, open, () => setOpen(false));
  return (
    <span
      class="menu"
      ref={root}
      onKeyDown={(event) => {
        if (!open || event.key !== "Escape") return;
        event.stopPropagation();
        setOpen(false);
        root.current?.querySelector<HTMLElement>("button")?.focus();
      }}
    >
      <button
        type="button"
        class="button"
        aria-haspopup="dialog"
        aria-expanded={open}
        title={props.label}
        onClick={() => setOpen(!open)}
      >
        {props.button}
      </button>
      {open && (
        <div class="menu-list menu-panel" role="group" aria-label={props.label}>
          {props.children}
        </div>
      )}
    </span>
  );
}
