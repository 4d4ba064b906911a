import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { listen } from "../../base/browser";
import "./menu.css";

interface PopoverProps {
  readonly label: string;
  readonly button: ComponentChildren;
  readonly children: ComponentChildren;
  readonly class?: string;
}

/** Escape and a press outside close it. */
export function Popover(props: PopoverProps) {
  const { open, setOpen, root, onKeyDown } = useOpened();
  return (
    <span class={`menu ${props.class ?? ""}`} ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        class="button opens"
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

export interface MenuItem {
  readonly id: string;
  readonly label: string;
  readonly run: () => void;
}

/** Arrows move; Escape and a press outside close it. */
export function Menu(props: {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly children: ComponentChildren;
  readonly empty: string;
  /** Of the button: the owner presses it by key. */
  readonly id?: string;
}) {
  const { open, setOpen, root, onKeyDown, close } = useOpened();
  useEffect(() => {
    if (open) root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, [open]);
  return (
    <span class="menu" ref={root} onKeyDown={onKeyDown}>
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
          {props.items.length === 0 && <p class="quiet">{props.empty}</p>}
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

export function useOpened() {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    const pressed = ({ target }: Event): void => {
      if (target instanceof Node && root.current?.contains(target) !== true)
        setOpen(false);
    };
    return listen(document, ["pointerdown"], pressed);
  }, [open]);
  const close = (): void => {
    setOpen(false);
    root.current?.querySelector<HTMLElement>("button")?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!open) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
    const items = [
      ...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? []),
    ];
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || items.length === 0) return;
    event.preventDefault();
    const at = items.findIndex((item) => item === document.activeElement);
    items[(at + by + items.length) % items.length]?.focus();
  };
  return { open, setOpen, root, close, onKeyDown };
}
