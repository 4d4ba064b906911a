/** How marks look: kinds differ by dash and glyph, not by colour alone. */

import type { Mark } from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";

export interface MarkLook {
  readonly colour: string;
  readonly opacity: number;
  readonly widthPx: number;
  readonly dash: readonly number[];
  /** Stands at the line's upper end; null for kinds that come often. */
  readonly glyph: string | null;
}

export const MARK_WORD: Readonly<Record<Mark["kind"], string>> = {
  attempt: "attempt",
  epoch: "epoch",
  phase: "phase",
  oom: "out of memory",
  retry: "allocator retry",
  dropped: "rows dropped",
  user: "mark",
};

export function markLook(kind: Mark["kind"], theme: Theme): MarkLook {
  const { bad, warn, link, secondary, text } = tokens(theme);
  switch (kind) {
    case "oom":
      return { colour: bad, opacity: 1, widthPx: 1.5, dash: [], glyph: "✖" };
    case "attempt":
      return { colour: text, opacity: 0.75, widthPx: 1, dash: [6, 3], glyph: "↻" };
    case "retry":
      return { colour: warn, opacity: 0.8, widthPx: 1, dash: [2, 3], glyph: null };
    case "dropped":
      return { colour: warn, opacity: 0.9, widthPx: 1, dash: [1, 2], glyph: "!" };
    case "user":
      return { colour: link, opacity: 0.9, widthPx: 1, dash: [4, 3], glyph: "◆" };
    case "phase":
      return { colour: secondary, opacity: 0.6, widthPx: 1, dash: [4, 4], glyph: null };
    case "epoch":
      return {
        colour: secondary,
        opacity: 0.45,
        widthPx: 1,
        dash: [2, 4],
        glyph: null,
      };
  }
}
