/** A view's commands, there from the moment the view is seen until it goes. */

import { useLayoutEffect } from "preact/hooks";
import type { Command, Commands } from "./commands";

/** `make` runs once, and again where one of `of` is another: commands ask for the rest. */
export function useCommands(
  commands: Commands | undefined,
  make: () => readonly Command[],
  of: readonly unknown[] = [],
): void {
  // Before it is painted: who sees a view may press its keys, however busy the page is.
  useLayoutEffect(() => commands?.register(make()), [commands, ...of]);
}
