/** What the shell hands to every view; a view takes nothing from anywhere else. */

import type { Signal } from "@preact/signals";
import type { Client } from "../../api/client";
import type { RunSummary } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Commands } from "../../base/commands";
import type { Theme } from "../../base/tokens";
import { originOf } from "../../model/words/origin";

/** Words of the URL, and what they become; null removes one. */
export type Changes = Readonly<Record<string, string | null>>;

/** The ranks the user chose. */
export interface RankChoice {
  /** `rank=12`: the page of one rank; null shows all. */
  readonly rank: number | null;
  /** `ranks=0-7,64`: the ranks to draw, as the routes read them; "" means all. */
  readonly filter: string;
  /** `pinned=12,40`: always drawn as lines. */
  readonly pinned: readonly number[];
}

/** What every chart takes of the page. */
export function lookOf({ theme, byteUnit, run }: ViewProps) {
  return { theme, byteUnit, origin: originOf(run) };
}

export interface ViewProps {
  readonly client: Client;
  readonly run: RunSummary;
  /** Which ranks the view is narrowed to. */
  readonly ranks: RankChoice;
  /** Narrows every view to one rank; null widens it to all again. */
  readonly chooseRank: (rank: number | null) => void;
  readonly setPinned: (ranks: readonly number[]) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** The view's own part of the URL, without the shell's words. */
  readonly params: ReadonlyMap<string, string>;
  /**
   * Changes the view's part of the URL; null removes a word. "replace" (default) for
   * what a drag changes, "push" for what the back button should undo.
   */
  readonly setParams: (changes: Changes, how?: "replace" | "push") => void;
  /** Opens another view, with some of the words of the URL changed. */
  readonly showPage: (name: string, changes: Changes) => void;
  /** Tells the user one sentence for a moment, e.g. that an export failed. */
  readonly say: (sentence: string) => void;
  /** x under the pointer, in units of the view's axis; emptied when that changes. */
  readonly cursor: Signal<number | null>;
  /** How often to ask again; see `useLive`. */
  readonly pollMs: number;
  /** Where the view registers what its buttons also do by key. */
  readonly commands: Commands;
}
