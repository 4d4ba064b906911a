/** A view's commands, there from the moment the view is seen until it goes. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Command, Commands } from "./commands";

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
