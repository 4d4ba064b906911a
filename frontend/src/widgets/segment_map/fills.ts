/**
 * How blocks are filled: live ones by what they hold, or all by their state. Patterns
 * carry the states, so that no colour has to: waiting blocks are striped, free ones that
 * share their segment with live ones hatched. Pure.
 */

import type { SegmentsResponse } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";
import { categoryColour, categoryLabel } from "../../model/category";
import { hexOf, pixelOf } from "../../render/palette";
import { PATTERN } from "../../render/raster";
import { mixed } from "../block_stack/colours";

/** What the colours of live blocks say. */
export type SegmentFill = "category" | "state";

/** `SegmentBlocks.state`. */
export const STATE = { free: 0, allocated: 1, pending: 2 } as const;

/** Every other block is a little nearer to the background: neighbours stay apart. */
const TONES = [1, 0.84] as const;
/** A block that waits to be freed keeps this much of its colour. */
const PENDING_KEEPS = 0.72;

const FREE: Readonly<
  Record<Theme, { readonly split: string; readonly whole: string }>
> = {
  light: { split: "#c3c8ce", whole: "#e9ebee" },
  dark: { split: "#63676d", whole: "#464a4f" },
};

const ALLOCATED: Readonly<Record<Theme, string>> = {
  light: "#1f6fc4",
  dark: "#5aa7ee",
};
const PENDING: Readonly<Record<Theme, string>> = { light: "#e7ad51", dark: "#e2b84f" };

export interface Fills {
  /** By kind four: both tones, and both of blocks that wait to be freed. */
  readonly pixel: Uint32Array;
}

/** Kinds: a category each, then split, whole, and (by state) allocated and pending. */
export function fills(theme: Theme, categories: SegmentsResponse["categories"]): Fills {
  const bg = pixelOf(tokens(theme).bg);
  const colours = [
    ...categories.map((category) => categoryColour(theme, category)),
    FREE[theme].split,
    FREE[theme].whole,
    ALLOCATED[theme],
    PENDING[theme],
  ];
  const num = categories.length;
  const pixel = new Uint32Array(colours.length * 4);
  colours.forEach((colour, kind) => {
    const own = pixelOf(colour);
    TONES.forEach((keeps, tone) => {
      const live = kind < num || kind === num + 2;
      const toned = live ? mixed(own, bg, keeps) : own;
      pixel[4 * kind + tone] = toned;
      pixel[4 * kind + 2 + tone] = mixed(toned, bg, kind < num ? PENDING_KEEPS : 1);
    });
  });
  return { pixel };
}

/** A block's fill: its pixel and its pattern. */
export interface BlockFill {
  readonly pixel: number;
  readonly pattern: number;
}

export function blockFill(
  { pixel }: Fills,
  answer: Pick<SegmentsResponse, "blocks" | "categories">,
  block: number,
  of: { readonly fill: SegmentFill; readonly isWhole: boolean },
): BlockFill {
  const { blocks, categories } = answer;
  const num = categories.length;
  const state = blocks.state[block] ?? STATE.free;
  if (state === STATE.free) {
    const kind = of.isWhole ? num + 1 : num;
    const pattern = of.isWhole ? PATTERN.solid : PATTERN.hatched;
    return { pixel: pixel[4 * kind] ?? 0, pattern };
  }
  const waits = state === STATE.pending;
  const byState = waits ? num + 3 : num + 2;
  const category = Math.min(blocks.category[block] ?? num, num - 1);
  const kind = of.fill === "state" || num === 0 ? byState : category;
  const place = 4 * kind + (waits ? 2 : 0) + (block & 1);
  return {
    pixel: pixel[place] ?? 0,
    pattern: waits ? PATTERN.striped : PATTERN.solid,
  };
}

/** One entry of the legend. */
export interface LegendEntry {
  readonly key: string;
  readonly label: string;
  readonly hint: string;
  /** "#rrggbb" */
  readonly colour: string;
  readonly pattern: "solid" | "striped" | "hatched";
  readonly bytes: number;
}

/** What the map shows, with the bytes of each, as far as blocks are listed. */
export function legendOf(
  answer: SegmentsResponse,
  fill: SegmentFill,
  theme: Theme,
): readonly LegendEntry[] {
  const { blocks, categories, segments } = answer;
  const held = new Float64Array(categories.length);
  for (let block = 0; block < blocks.state.length; block += 1) {
    if (blocks.state[block] !== STATE.allocated) continue;
    const category = blocks.category[block] ?? categories.length;
    if (category < held.length) {
      held[category] = (held[category] ?? 0) + (blocks.size[block] ?? 0);
    }
  }
  let whole = 0;
  segments.freeBytes.forEach((bytes, row) => {
    if (segments.numActive[row] === 0) whole += bytes;
  });
  const live: LegendEntry[] =
    fill === "state"
      ? [
          {
            key: "allocated",
            label: "allocated",
            hint: "Blocks in use, as rounded by the allocator",
            colour: ALLOCATED[theme],
            pattern: "solid",
            bytes: answer.allocatedBytes,
          },
        ]
      : categories.map((category, i) => ({
          key: category,
          label: categoryLabel(category),
          hint: `Allocated blocks: ${categoryLabel(category)}`,
          colour: categoryColour(theme, category),
          pattern: "solid",
          bytes: held[i] ?? 0,
        }));
  const rest: LegendEntry[] = [
    {
      key: "pending",
      label: "pending free",
      hint: "Freed, and kept until another stream has finished with it",
      colour: PENDING[theme],
      pattern: "striped",
      bytes: answer.pendingBytes,
    },
    {
      key: "split",
      label: "free, in use beside it",
      hint: "inactive_split: free blocks that share their segment with live ones, so that it cannot be given back",
      colour: FREE[theme].split,
      pattern: "hatched",
      bytes: Math.max(0, answer.freeBytes - whole),
    },
    {
      key: "whole",
      label: "free segments",
      hint: "Wholly free: torch.cuda.empty_cache() gives these back",
      colour: FREE[theme].whole,
      pattern: "solid",
      bytes: whole,
    },
  ];
  return [...live, ...rest].filter(({ bytes }) => bytes > 0);
}

/** A fill as the swatch beside a block's card shows it. */
export function fillColour(fill: BlockFill): string {
  return hexOf(fill.pixel);
}
