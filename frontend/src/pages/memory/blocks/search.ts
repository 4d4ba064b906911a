import { useEffect, useMemo, useState } from "preact/hooks";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import {
  isEmptySearch,
  matchingFrames,
  matchingStacks,
  parseSearch,
  sizeMatches,
  stackMatches,
} from "../../../model/block_search";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import type { BlockTile } from "../../../widgets/block_stack/tile";

/** Letters typed within this time make one search. */
const TYPING_MS = 150;

export interface Search {
  /** Why the query cannot be parsed; "" if it can. */
  readonly problem: string;
  /** By stack; null: no search, or only sizes. */
  readonly stacks: Uint8Array | null;
  /** By frame, likewise. */
  readonly frames: Uint8Array | null;
  /** By block of a tile; null: no search. */
  readonly blocks: ((tile: BlockTile, slot: number) => boolean) | null;
}

export function searchOf(typed: string, stacks: CallStacks | null): Search {
  const search = parseSearch(typed);
  const [problem = ""] = search.problems;
  if (isEmptySearch(search)) {
    return { problem, stacks: null, frames: null, blocks: null };
  }
  const hasTerms = search.terms.length > 0 && stacks !== null;
  const matches = hasTerms ? matchingStacks(search, stacks) : null;
  return {
    problem,
    stacks: matches,
    frames: hasTerms ? matchingFrames(search, stacks) : null,
    blocks: ({ answer }, slot) =>
      sizeMatches(search, answer.lives.size[slot] ?? 0) &&
      (matches === null || stackMatches(matches, answer.lives.stack[slot] ?? -1)),
  };
}

export function useSearch(typed: string, stacks: CallStacks | null): Search {
  const [settled, setSettled] = useState(typed);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(typed), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [typed]);
  return useMemo(() => searchOf(settled, stacks), [settled, stacks]);
}

export function foundWords(
  tile: BlockTile | undefined,
  { blocks, problem }: Pick<Search, "blocks" | "problem">,
  byteUnit: ByteUnit,
): { readonly short: string; readonly long: string } {
  if (problem !== "") return { short: "not understood", long: problem };
  if (blocks === null || tile === undefined) return { short: "", long: "" };
  let num = 0;
  for (let slot = 0; slot < tile.answer.lives.life.length; slot += 1) {
    if (blocks(tile, slot)) num += 1;
  }
  const least = formatBytes(tile.answer.minBytes, byteUnit);
  const thin = `Blocks below ${least} are too thin to be drawn at this height`;
  if (num === 0) return { short: "none drawn", long: `No block matches. ${thin}.` };
  const short = `${formatInteger(num)} drawn`;
  return { short, long: `${short} of those in this part of the history. ${thin}.` };
}
