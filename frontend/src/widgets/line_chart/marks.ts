/** Kinds differ by dash and glyph, not by colour alone. */

import type { Mark } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";

interface MarkLook {
  readonly colour: string;
  readonly opacity: number;
  readonly widthPx: number;
  readonly dash: readonly number[];
  /** Px from the bottom; null: the whole plot. */
  readonly heightPx: number | null;
  /** At the line's upper end; null for frequent kinds. */
  readonly glyph: string | null;
}

/** Kinds whose name differs from their key. */
export const MARK_WORDS: Partial<Record<Mark["kind"], string>> = {
  oom: "out of memory",
  retry: "allocator retry",
  dropped: "rows dropped",
  user: "mark",
};

interface Style extends Omit<MarkLook, "colour"> {
  readonly token: "bad" | "warn" | "link" | "secondary" | "text";
}

const PLAIN = { opacity: 0.9, widthPx: 1, dash: [], heightPx: null, glyph: null };

/** Gravest first: of marks in one place it gives the line its look. */
const STYLES: Readonly<Record<Mark["kind"], Style>> = {
  oom: { ...PLAIN, token: "bad", opacity: 1, widthPx: 1.5, glyph: "✖" },
  attempt: { ...PLAIN, token: "text", opacity: 0.75, dash: [6, 3], glyph: "↻" },
  dropped: { ...PLAIN, token: "warn", dash: [1, 2], glyph: "!" },
  // Frequent: full lines would hide the data.
  retry: { ...PLAIN, token: "warn", widthPx: 1.5, heightPx: 10 },
  user: { ...PLAIN, token: "link", dash: [4, 3], glyph: "◆" },
  phase: { ...PLAIN, token: "secondary", opacity: 0.6, dash: [4, 4] },
  epoch: { ...PLAIN, token: "secondary", opacity: 0.45, dash: [2, 4] },
};

const KINDS = Object.keys(STYLES);

export function byGravity(a: Mark, b: Mark): number {
  return KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind);
}

export function markLook(kind: Mark["kind"], theme: Theme): MarkLook {
  const { token, ...look } = STYLES[kind];
  return { ...look, colour: tokens(theme)[token] };
}
