/** One list for keyboard, palette and help: none promises what another lacks. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { signal, type ReadonlySignal } from "@preact/signals";

export interface Command {
  /** Unique among those registered, e.g. "timeline.fit". */
  readonly id: string;
  /** Imperative sentence: "Fit the whole run". */
  readonly label: string;
  /** Heading in help: "Go to", "View", "Timeline" ... */
  readonly group: string;
  /** `KeyboardEvent.key`, letters in lower case; "Ctrl+k"; "Shift+" where that differs. */
  readonly key?: string;
  readonly run: () => void;
}

export type CommandRow = readonly [
  id: string,
  label: string,
  run: () => void,
  key?: string,
];

export function commandsOf(
  prefix: string,
  group: string,
  rows: readonly CommandRow[],
): readonly Command[] {
  return rows.map(([id, label, run, key]) => ({
    id: `${prefix}.${id}`,
    label,
    group,
    run,
    ...(key === undefined ? {} : { key }),
  }));
}

export class Commands {
  readonly #registered = signal<readonly Command[]>([]);

  get all(): ReadonlySignal<readonly Command[]> {
    return this.#registered;
  }

  /** A later command wins a key. Returns the function that removes them. */
  register(commands: readonly Command[]): () => void {
    const own = new Set(commands);
    this.#registered.value = [...this.#registered.peek(), ...commands];
    return () => {
      this.#registered.value = this.#registered.peek().filter((c) => !own.has(c));
    };
  }

  forKey(key: string, shifted = false): Command | undefined {
    const all = this.#registered.peek();
    const named = (name: string) => all.findLast((command) => command.key === name);
    return (shifted ? named(`Shift+${key}`) : undefined) ?? named(key);
  }
}

/** As `Command.key` writes it. */
export function keyName(event: {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
}): string | null {
  if (event.altKey) return null;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return event.ctrlKey || event.metaKey ? `Ctrl+${key}` : key;
}

/** Again when one of `of` changes; a command runs as the newest `make` makes it. */
export function useCommands(
  commands: Commands | undefined,
  make: () => readonly Command[],
  of: readonly unknown[] = [],
): void {
  const newest = useRef(make);
  newest.current = make;
  const run = (id: string): void => {
    newest
      .current()
      .find((command) => command.id === id)
      ?.run();
  };
  // Before paint: the keys of a visible view work, however busy the page is.
  useLayoutEffect(
    () =>
      commands?.register(
        make().map((command) => ({ ...command, run: () => run(command.id) })),
      ),
    [commands, ...of],
  );
}
