import { useEffect, useLayoutEffect } from "preact/hooks";
import { pagePulse } from "../../api/live/watch";
import { listen } from "../../base/browser";
import { keyName, useCommands, type Command, type Commands } from "../../base/commands";
import { isTyping, type HostPage } from "../host_page";

/** TensorBoard's document has the focus, and so the keys, until our page takes it. */
export function useFocus(host: HostPage): void {
  useEffect(() => {
    host.takeFocus();
    return pagePulse.onShown(host.takeFocus);
  }, [host]);
  useEffect(() => {
    const entered = (): void => {
      if (!document.hasFocus()) host.takeFocus();
    };
    return listen(document.documentElement, ["pointerenter"], entered);
  }, [host]);
}

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
    return listen(document, ["keydown"], pressed);
  }, [commands, listening]);
}
