/** Everything the shell passes to a view; views have no other input. */

import type { Signal } from "@preact/signals";
import type { Client } from "../../api/client";
import type { RunSummary } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Commands } from "../../base/commands";
import type { Theme } from "../../base/tokens";
import { originOf } from "../../model/words/origin";

/** Words of the URL and their new values; null removes one. */
export type Changes = Readonly<Record<string, string | null>>;

export interface RankChoice {
  /** `rank=12`: the page of one rank; null: all. */
  readonly rank: number | null;
  /** `ranks=0-7,64`: the drawn ranks, in the routes' syntax; "": all. */
  readonly filter: string;
  /** `pinned=12,40`: always drawn as lines. */
  readonly pinned: readonly number[];
}

export function lookOf({ theme, byteUnit, run }: ViewProps) {
  return { theme, byteUnit, origin: originOf(run) };
}

export interface ViewProps {
  readonly client: Client;
  readonly run: RunSummary;
  readonly ranks: RankChoice;
  /** Narrows every view to one rank; null: all ranks. */
  readonly chooseRank: (rank: number | null) => void;
  /** Opens another run on the same page; its rank and trace are chosen anew. */
  readonly chooseRun: (id: string) => void;
  readonly setPinned: (ranks: readonly number[]) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** The view's own words of the URL, without the shell's. */
  readonly params: ReadonlyMap<string, string>;
  /**
   * null removes a word. "push" for what the back button should undo: all changes of one
   * action are one entry of the history. "replace" (default) adds none.
   */
  readonly setParams: (changes: Changes, how?: "replace" | "push") => void;
  /** Opens another view and changes words of the URL. */
  readonly showPage: (name: string, changes: Changes) => void;
  /** Shows one sentence briefly, e.g. that an export failed. */
  readonly say: (sentence: string) => void;
  /**
   * To the clipboard, with run, rank and a link to what is shown; `rank`: where the page
   * chose it.
   */
  readonly copyMarkdown: (markdown: string, rank?: number) => void;
  /** x under the pointer, in units of the view's axis; reset when that changes. */
  readonly cursor: Signal<number | null>;
  /** See `useLive`. */
  readonly pollMs: number;
  readonly commands: Commands;
}
