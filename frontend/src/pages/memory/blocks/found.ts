/** What a search found, in words. Pure. */

import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import type { BlockTile } from "../../../widgets/block_stack/tile";
import type { Search } from "./state/search";

/** What a search found, shortly and in full. */
export interface Found {
  readonly short: string;
  readonly long: string;
}

export const NOTHING_FOUND: Found = { short: "", long: "" };

export function foundWords(
  tiles: readonly BlockTile[],
  { blocks, search }: Pick<Search, "blocks" | "search">,
  byteUnit: ByteUnit,
): Found {
  const [problem] = search.problems;
  if (problem !== undefined) return { short: "not understood", long: problem };
  const tile = tiles.at(-1);
  if (blocks === null || tile === undefined) return NOTHING_FOUND;
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
