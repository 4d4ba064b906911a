import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { listen } from "../../base/browser";
import "./menu.css";

/** In a menu the first of these has the focus. */
const FOCUSED = ["input", "[aria-current=true]", "[role=menuitem]"];

/** Arrows move among menu items; Escape and a press outside close what the button opens. */
export function Opener(props: {
  readonly popup: "dialog" | "menu";
  readonly class: string;
  readonly button: ButtonHTMLAttributes;
  readonly children: (close: () => void) => ComponentChildren;
}) {
  const { popup } = props;
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLElement>(null);
  const all = (selector: string): readonly HTMLElement[] => [
    ...(root.current?.querySelectorAll<HTMLElement>(selector) ?? []),
  ];
  useEffect(() => {
    if (!open) return undefined;
    if (popup === "menu") FOCUSED.flatMap(all)[0]?.focus();
    const pressed = ({ target }: Event): void => {
      if (target instanceof Node && root.current?.contains(target) !== true)
        setOpen(false);
    };
    return listen(document, ["pointerdown"], pressed);
  }, [open]);
  const close = (): void => {
    setOpen(false);
    all("button")[0]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!open) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
    const items = all("[role=menuitem]");
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || items.length === 0) return;
    event.preventDefault();
    const index = items.findIndex((item) => item === document.activeElement);
    items[(index + by + items.length) % items.length]?.focus();
  };
  return (
    <span class={props.class} ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        {...props.button}
        aria-haspopup={popup}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      />
      {open && props.children(close)}
    </span>
  );
}

export function Popover(props: {
  readonly label: string;
  readonly button: ComponentChildren;
  readonly children: ComponentChildren;
  readonly class?: string;
}) {
  const { label, button } = props;
  return (
    <Opener
      popup="dialog"
      class={`menu ${props.class ?? ""}`}
      button={{ class: "button opens", title: label, children: button }}
    >
      {() => (
        <div class="menu-list menu-panel" role="group" aria-label={label}>
          {props.children}
        </div>
      )}
    </Opener>
  );
}

export interface MenuItem {
  readonly id: string;
  readonly label: string;
  readonly run: () => void;
}

export function Menu(props: {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly children: ComponentChildren;
  readonly empty: string;
  /** Of the button: the owner presses it by key. */
  readonly id?: string;
}) {
  const { id, label, items, children } = props;
  const attributes = { id, title: label, "aria-label": label };
  return (
    <Opener
      popup="menu"
      class="menu"
      button={{ ...attributes, class: "icon-button", children }}
    >
      {(close) => (
        <div class="menu-list" role="menu" aria-label={label}>
          {items.length === 0 && <p class="quiet">{props.empty}</p>}
          {items.map((item) => (
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
    </Opener>
  );
}
