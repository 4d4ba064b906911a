/** Whether a row is pressed just now: one that is made anew meanwhile hears of no click. */

import { useEffect, useState } from "preact/hooks";

/** Who holds longer does not click; and a release may happen where nobody hears of it. */
const LONGEST_MS = 10_000;

/** Rows of the table in `root` are not to be replaced while this is true. */
export function useRowPressed(root: { readonly current: HTMLElement | null }): boolean {
  const [isPressed, setIsPressed] = useState(false);
  useEffect(() => {
    const element = root.current;
    if (element === null) return;
    let timer = 0;
    const releaseAfter = (ms: number): void => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => setIsPressed(false), ms);
    };
    const press = ({ target }: PointerEvent): void => {
      // The scroll bar is no row, and says nothing when it is let go.
      if (!(target instanceof Element) || target.closest(".tabulator-row") === null)
        return;
      setIsPressed(true);
      releaseAfter(LONGEST_MS);
    };
    // The click comes right behind.
    const release = (): void => releaseAfter(0);
    element.addEventListener("pointerdown", press);
    window.addEventListener("pointerup", release);
    window.addEventListener("pointercancel", release);
    return () => {
      window.clearTimeout(timer);
      element.removeEventListener("pointerdown", press);
      window.removeEventListener("pointerup", release);
      window.removeEventListener("pointercancel", release);
    };
  }, [root]);
  return isPressed;
}
