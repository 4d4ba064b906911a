/** The search as it is used: which stacks, frames and blocks it finds. */

import { useEffect, useMemo, useState } from "preact/hooks";
import {
  isEmptySearch,
  matchingFrames,
  matchingStacks,
  parseSearch,
  sizeMatches,
  stackMatches,
  type BlockSearch,
} from "../../../../model/block_search";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import type { BlockTile } from "../../../../widgets/block_stack/tile";

/** Letters typed one after the other are searched for once. */
const TYPING_MS = 150;

export interface Search {
  readonly search: BlockSearch;
  /** By stack; null: nothing is searched for, or only sizes. */
  readonly stacks: Uint8Array | null;
  /** By frame, likewise. */
  readonly frames: Uint8Array | null;
  /** By block of a tile; null: nothing is searched for. */
  readonly blocks: ((tile: BlockTile, slot: number) => boolean) | null;
}

export function useSearch(typed: string, stacks: CallStacks | null): Search {
  const settled = useSettled(typed);
  return useMemo(() => {
    const search = parseSearch(settled);
    if (isEmptySearch(search)) {
      return { search, stacks: null, frames: null, blocks: null };
    }
    const words = search.terms.length > 0 && stacks !== null;
    const found = words ? matchingStacks(search, stacks) : null;
    return {
      search,
      stacks: found,
      frames: words ? matchingFrames(search, stacks) : null,
      blocks: ({ answer }, slot) =>
        sizeMatches(search, answer.lives.size[slot] ?? 0) &&
        (found === null || stackMatches(found, answer.lives.stack[slot] ?? -1)),
    };
  }, [settled, stacks]);
}

function useSettled(typed: string): string {
  const [settled, setSettled] = useState(typed);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(typed), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [typed]);
  return settled;
}
