import { Fragment, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLive } from "../../api/live/use_live";
import type { Command } from "../../base/commands";
import { openPlace } from "../../widgets/finding/place";
import type { Shell } from "../shell/shell";
import "./overlays.css";

/** The browser keeps the focus inside and closes it on Escape. */
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
      <header class="row">
        <h2>Keyboard</h2>
        <button type="button" class="button end" onClick={props.close}>
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
      <a class="button" href="docs/index.md" target="_blank" rel="noopener">
        Documentation
      </a>
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

export function Palette(
  props: Pick<Shell, "address" | "commands" | "openRun" | "view"> & {
    readonly close: () => void;
  },
) {
  const { view, commands } = props;
  const { run: shown, strip } = props.openRun;
  const { chooseRank } = props.address;
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const asked = shown === null ? null : { run: shown.id };
  const { data } = useLive(view.client, "findings", asked);
  const findings = data?.findings.map(({ id, key, title, sentence, place }) => ({
    id: `${key}.${id}`,
    group: "Finding",
    label: `${title}: ${sentence}`,
    run: () =>
      place === null ? view.showPage("overview", {}) : openPlace(place, view),
  }));
  const typed = (text.match(/\d+/g) ?? []).map(Number);
  const ranks = typed
    .filter((rank) => strip?.rank.includes(rank))
    .map((rank) => ({
      id: `rank.${rank}`,
      group: "Ranks",
      label: `Rank ${rank}`,
      run: () => chooseRank(rank),
    }));
  const all = [...ranks, ...commands.all.value, ...(findings ?? [])];
  const matches = matchCommands(all, text);
  const chosen = Math.min(index, matches.length - 1);
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
        aria-activedescendant={matches[chosen] && `palette-${matches[chosen].id}`}
        aria-label="Find a command"
        placeholder="A page, a command, a finding, rank 41"
        autocomplete="off"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setIndex(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") run(matches[chosen]);
          if (event.key === "ArrowDown")
            setIndex(Math.min(chosen + 1, matches.length - 1));
          if (event.key === "ArrowUp") setIndex(Math.max(chosen - 1, 0));
          if (event.key.startsWith("Arrow")) event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands">
        {matches.map((command, i) => (
          <li
            key={command.id}
            id={`palette-${command.id}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => run(command)}
          >
            <span class="quiet">{command.group}</span>
            <span title={command.label}>{command.label}</span>
            {command.key !== undefined && <kbd>{keyLabel(command.key)}</kbd>}
          </li>
        ))}
      </ul>
      {matches.length === 0 && <p class="quiet">No command matches.</p>}
    </Modal>
  );
}

/** Words that people type and findings use. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  leak: ["grow", "retained", "kept", "holds"],
  oom: ["out of memory"],
  slow: ["straggler", "waiting"],
};

/** Group and label hold every word typed, in any order. */
export function matchCommands(
  commands: readonly Command[],
  text: string,
): readonly Command[] {
  const typedWords = text.toLowerCase().split(/\s+/).filter(Boolean);
  return commands.filter((command) => {
    const label = `${command.group} ${command.label}`.toLowerCase();
    return typedWords.every((word) =>
      [word, ...(MEANT[word] ?? [])].some((synonym) => label.includes(synonym)),
    );
  });
}
