/**
 * What the user can do right now. The shell and the view shown register commands; the
 * keyboard, the palette and the help overlay all read this one list, so none of them can
 * promise what another does not know.
 */

import { useLayoutEffect, useRef } from "preact/hooks";
import { signal, type ReadonlySignal } from "@preact/signals";

export interface Command {
  /** Stable and unique among those registered, e.g. "timeline.fit". */
  readonly id: string;
  /** Imperative sentence: "Fit the whole run". */
  readonly label: string;
  /** Where help lists it: "Go to", "View", "Timeline" ... */
  readonly group: string;
  /**
   * One key as `KeyboardEvent.key`, lower case for letters, or "Ctrl+k"; with "Shift+"
   * before it what the key does with it, where that is something else than without.
   */
  readonly key?: string;
  readonly run: () => void;
}

export type CommandRow = readonly [
  id: string,
  label: string,
  run: () => void,
  key?: string,
];

/** Commands of one group, one in a row; their ids begin with `prefix`. */
export function commandsOf(
  prefix: string,
  group: string,
  rows: readonly CommandRow[],
): readonly Command[] {
  return rows.map(([id, label, run, key]) => ({
    ...{ id: `${prefix}.${id}`, label, group, run },
    ...(key === undefined ? {} : { key }),
  }));
}

export class Commands {
  readonly #registered = signal<readonly Command[]>([]);

  get all(): ReadonlySignal<readonly Command[]> {
    return this.#registered;
  }

  /** Adds commands; a later one wins a key. The returned function takes them back. */
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

/** The name of the key pressed, as `Command.key` writes it. */
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

/**
 * Registers what `make` says, again where one of `of` is another. A command that runs is
 * made anew by the newest `make`, so it acts on what is shown then.
 */
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
      .find((one) => one.id === id)
      ?.run();
  };
  // Before it is painted: who sees a view may press its keys, however busy the page is.
  useLayoutEffect(
    () => commands?.register(make().map((one) => ({ ...one, run: () => run(one.id) }))),
    [commands, ...of],
  );
}
