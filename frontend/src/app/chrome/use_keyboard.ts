/** Registers the shell's commands and runs whatever command a key names. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { keyName, type Command, type Commands } from "../../base/commands";
import { useCommands } from "../../base/use_commands";

/** `listening` is false while a dialog has the keyboard. */
export function useKeyboard(
  commands: Commands,
  listening: boolean,
  own: readonly Command[],
): void {
  // Registered once; each runs the newest version of itself.
  const newest = useRef(own);
  newest.current = own;
  useCommands(commands, () =>
    newest.current.map((command) => ({
      ...command,
      run: () => newest.current.find((one) => one.id === command.id)?.run(),
    })),
  );
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (!listening || event.defaultPrevented) return;
      const key = keyName(event);
      if (key === null || (isTyping(event.target) && !key.startsWith("Ctrl+"))) return;
      const command = commands.forKey(key, event.shiftKey);
      if (command === undefined) return;
      event.preventDefault();
      command.run();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [commands, listening]);
}

/** Whether keys belong to an element; it may be of TensorBoard's document. */
export function isTyping(target: EventTarget | null): boolean {
  // Another document's elements are no instances of this one's classes.
  if (target === null || !("tagName" in target)) return false;
  const editable = "isContentEditable" in target && target.isContentEditable === true;
  return editable || /^(INPUT|SELECT|TEXTAREA)$/.test(String(target.tagName));
}
