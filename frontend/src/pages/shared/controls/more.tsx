/** Controls that few need: behind one word, in a panel that a press elsewhere closes. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { useOutside } from "../../../widgets/menu/use_outside";
import "./more.css";

export function More(props: {
  readonly label: string;
  readonly children: ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDetailsElement>(null);
  useOutside(root, open, () => setOpen(false));
  return (
    <details
      ref={root}
      class="more"
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
      onKeyDown={(event) => {
        if (!open || event.key !== "Escape") return;
        event.stopPropagation();
        setOpen(false);
        root.current?.querySelector("summary")?.focus();
      }}
    >
      <summary class="button">{props.label}</summary>
      <div>{props.children}</div>
    </details>
  );
}
