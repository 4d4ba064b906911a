/** Help and the command palette: both only list what `Commands` holds. */

import { Fragment, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Command } from "../../base/commands";

/** A modal dialog; the browser keeps the focus inside and closes it on Escape. */
export function Modal(props: {
  readonly label: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
  readonly class?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.class}
      aria-label={props.label}
      onClose={props.close}
      onKeyDown={(event) => {
        event.stopPropagation(); // the page beneath has commands of its own, on Escape too
      }}
      onClick={(event) => {
        // The backdrop belongs to the dialog element itself.
        if (event.target === dialog.current) props.close();
      }}
    >
      {props.children}
    </dialog>
  );
}

export function Help(props: {
  readonly commands: readonly Command[];
  readonly close: () => void;
}) {
  const withKey = props.commands.filter((command) => command.key !== undefined);
  const groups = [...new Set(withKey.map((command) => command.group))];
  return (
    <Modal label="Keyboard and help" close={props.close} class="help">
      <header>
        <h2>Keyboard</h2>
        <button type="button" class="button" onClick={props.close}>
          Close
        </button>
      </header>
      <div class="help-groups">
        {groups.map((group) => (
          <section key={group}>
            <h3 class="quiet">{group}</h3>
            <dl>
              {withKey
                .filter((command) => command.group === group)
                .map(({ id, key = "", label }) => (
                  <Fragment key={id}>
                    <dt>
                      <kbd>{keyLabel(key)}</kbd>
                    </dt>
                    <dd>{label}</dd>
                  </Fragment>
                ))}
            </dl>
          </section>
        ))}
      </div>
      <p class="quiet">
        Sizes are IEC units (1 GiB = 1,073,741,824 bytes); point at a number for every
        digit. “–” means not recorded, never zero. Times are this browser’s local time.
      </p>
    </Modal>
  );
}

function keyLabel(key: string): string {
  if (key.startsWith("Shift+")) return `Shift+${keyLabel(key.slice(6))}`;
  const named: Readonly<Record<string, string>> = {
    "Ctrl+k": "Ctrl K",
    Escape: "Esc",
    ArrowLeft: "←",
    ArrowRight: "→",
    ArrowUp: "↑",
    ArrowDown: "↓",
    " ": "Space",
  };
  return named[key] ?? (key.length === 1 ? key.toUpperCase() : key);
}

export function Palette(props: {
  readonly commands: readonly Command[];
  readonly close: () => void;
}) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = matchCommands(props.commands, text);
  const chosen = Math.min(at, found.length - 1);
  const run = (command: Command | undefined): void => {
    if (command === undefined) return;
    props.close();
    command.run();
  };
  return (
    <Modal label="Commands" close={props.close} class="palette">
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[chosen] && `palette-${found[chosen].id}`}
        aria-label="Find a command"
        placeholder="What do you want to do?"
        autocomplete="off"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") run(found[chosen]);
          if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, found.length - 1));
          if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
          if (event.key.startsWith("Arrow")) event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands">
        {found.map((command, i) => (
          <li
            key={command.id}
            id={`palette-${command.id}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => run(command)}
          >
            <span class="quiet">{command.group}</span>
            <span>{command.label}</span>
            {command.key !== undefined && <kbd>{keyLabel(command.key)}</kbd>}
          </li>
        ))}
        {found.length === 0 && <li class="quiet">No command matches.</li>}
      </ul>
    </Modal>
  );
}

/** Commands whose group and label hold every word typed, in any order. */
export function matchCommands(
  commands: readonly Command[],
  text: string,
): readonly Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return commands.filter((command) => {
    const label = `${command.group} ${command.label}`.toLowerCase();
    return words.every((word) => label.includes(word));
  });
}
