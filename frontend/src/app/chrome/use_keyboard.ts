/** Registers the shell's commands and runs whatever command a key names. */

import { useLayoutEffect } from "preact/hooks";
import { keyName, type Command, type Commands } from "../../base/commands";
import { useCommands } from "../../base/use_commands";

/** `listening` is false while a dialog has the keyboard. */
export function useKeyboard(
  commands: Commands,
  listening: boolean,
  own: readonly Command[],
): void {
  useCommands(commands, () => own);
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
