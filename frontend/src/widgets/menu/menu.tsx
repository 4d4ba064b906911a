/** A button that opens a list of actions; arrows move, Escape and outside close. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useOutside } from "./use_outside";
import "./menu.css";

export interface MenuItem {
  readonly id: string;
  readonly label: string;
  readonly run: () => void;
}

export interface MenuProps {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly children: ComponentChildren;
  /** Shown instead of items where there are none. */
  readonly empty: string;
  /** Of the button, which the owner presses too (by key). */
  readonly id?: string;
}

export function Menu(props: MenuProps) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (open) root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, [open]);
  useOutside(root, open, () => setOpen(false));
  const close = (): void => {
    setOpen(false);
    root.current?.querySelector<HTMLElement>("button")?.focus();
  };
  return (
    <span
      class="menu"
      ref={root}
      onKeyDown={(event) => {
        if (open && event.key === "Escape") {
          event.stopPropagation();
          close();
        }
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          if (open) event.preventDefault();
          step(root.current, event.key === "ArrowDown" ? 1 : -1);
        }
      }}
    >
      <button
        id={props.id}
        type="button"
        class="icon-button"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={props.label}
        title={props.label}
        onClick={() => setOpen(!open)}
      >
        {props.children}
      </button>
      {open && (
        <div class="menu-list" role="menu" aria-label={props.label}>
          {props.items.length === 0 && <p class="menu-empty">{props.empty}</p>}
          {props.items.map((item) => (
            <button
              key={item.id}
              type="button"
              role="menuitem"
              onClick={() => {
                close();
                item.run();
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </span>
  );
}

function step(root: HTMLElement | null, by: number): void {
  const items = [...(root?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  const at = items.findIndex((item) => item === document.activeElement);
  items[(at + by + items.length) % items.length]?.focus();
}
