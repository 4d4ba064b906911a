/** The three horizontal axes, as the address and the switch name them. */

import type { XKind } from "../../api/types.gen";

export const X_KINDS: readonly XKind[] = ["step", "relative", "wall"];

export const X_WORDS: Readonly<Record<XKind, string>> = {
  step: "Step",
  relative: "Relative",
  wall: "Wall time",
};

export function isXKind(text: string): text is XKind {
  return X_KINDS.some((kind) => kind === text);
}
