/** A press anywhere else closes what is open. */

import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

export function useOutside(
  root: RefObject<HTMLElement | null>,
  open: boolean,
  close: () => void,
): void {
  useEffect(() => {
    if (!open) return undefined;
    const pressed = ({ target }: Event): void => {
      if (target instanceof Node && root.current?.contains(target) !== true) close();
    };
    document.addEventListener("pointerdown", pressed);
    return () => document.removeEventListener("pointerdown", pressed);
  }, [open]);
}
