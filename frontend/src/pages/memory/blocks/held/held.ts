/**
 * Live bytes by stack. While the pointer moves they come from the tile; where it rests,
 * and without a pointer, the server returns exact ones.
 */

import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client, Query } from "../../../../api/client";
import type { AllocationLiveResponse } from "../../../../api/types.gen";
import { useLive } from "../../../../api/use_live";
import type { Theme } from "../../../../base/tokens";
import { siteColour } from "../../../../model/category";
import { OTHER_STACKS, type CallStacks } from "../../../../model/stacks/call_stacks";
import { groupColours } from "../../../../widgets/block_stack/paint/colours";
import type { BlockHover } from "../../../../widgets/block_stack/picture";
import type { BlockStage } from "../../../../widgets/block_stack/stage";
import type { BlockTiles } from "../../tiles/use_tiles";

export interface Held {
  readonly moment: number;
  /** Stacks by slot; the same array while its trees can be reused. */
  readonly stack: Int32Array;
  readonly bytes: Float64Array;
  /** Blocks by slot; null while the pointer moves: only bytes are known. */
  readonly blocks: Int32Array | null;
  /** Bytes by slot that order the boxes, so that boxes stay in place. */
  readonly weights: Float64Array;
  /** By slot, where known: the category with most of its bytes. */
  readonly category: Uint8Array;
}

/** Further stacks are narrower than a pixel: they are merged. */
const MOST_STACKS = 4_000;

export function heldExactly(live: AllocationLiveResponse): Held {
  const { moment, stack, stackBytes, stackBlocks, stackCategory: category } = live;
  if (stack.length <= MOST_STACKS) {
    const [bytes, blocks] = [stackBytes, stackBlocks];
    return { moment, stack, bytes, blocks, weights: bytes, category };
  }
  const folded = (values: Iterable<number>): number[] => {
    const all = Array.from(values);
    return [...all.splice(0, MOST_STACKS), all.reduce((sum, one) => sum + one, 0)];
  };
  const bytes = Float64Array.from(folded(stackBytes));
  return {
    ...{ moment, bytes, weights: bytes },
    stack: Int32Array.of(...stack.subarray(0, MOST_STACKS), OTHER_STACKS),
    blocks: Int32Array.from(folded(stackBlocks)),
    category: category.subarray(0, MOST_STACKS),
  };
}

const EXACT = new WeakMap<AllocationLiveResponse, Held>();

export function exactly(live: AllocationLiveResponse): Held {
  const held = EXACT.get(live) ?? heldExactly(live);
  EXACT.set(live, held);
  return held;
}

export interface HeldColours {
  readonly palette: readonly string[];
  readonly rows: (held: Pick<Held, "stack" | "category">) => Uint8Array;
}

export function heldColours(
  live: Pick<AllocationLiveResponse, "categories"> | null,
  stacks: CallStacks | null,
  culprits: ReadonlySet<string>,
  theme: Theme,
): HeldColours {
  const groups = live?.categories ?? [];
  const culprit = groups.length;
  const palette = [
    ...groupColours(theme, groups, "category", culprits),
    siteColour(theme, true),
    theme === "dark" ? "#777b82" : "#b6bac0",
  ];
  const known = new WeakMap<Int32Array, Uint8Array>();
  const rows = ({ stack, category }: Pick<Held, "stack" | "category">): Uint8Array =>
    Uint8Array.from(stack, (one, slot) => {
      const named = culprits.size > 0 && culprits.has(stacks?.stackLabel(one) ?? "");
      const own = category[slot] ?? culprit;
      return named ? culprit : own < culprit ? own : culprit + 1;
    });
  return {
    palette,
    rows: (held) => {
      const found = known.get(held.stack) ?? rows(held);
      known.set(held.stack, found);
      return found;
    },
  };
}

/** From the tile under the pointer, else from that of everything; null: not loaded. */
function followed(tiles: BlockTiles, hover: BlockHover): Held | null {
  const [whole] = tiles.tiles;
  const tile = tiles.holders(hover.tile) === null ? whole : hover.tile;
  const holders = tile === undefined ? null : tiles.holders(tile);
  const column = tile?.columnAt(hover.x) ?? -1;
  if (holders === null || column < 0) return null;
  return {
    moment: holders.moment[column] ?? hover.moment,
    stack: holders.stack,
    bytes: holders.at(column),
    blocks: null,
    weights: holders.highest,
    category: holders.category,
  };
}

interface HeldNow {
  readonly held: ReadonlySignal<Held | null>;
  /** The exact answer: where the pointer rests, else of the anchor. */
  readonly live: AllocationLiveResponse | null;
  /** Of the anchor alone. */
  readonly anchored: AllocationLiveResponse | null;
}

/** The pointer rests after this time without a move. */
const REST_MS = 220;

function useRest({ hovered }: BlockStage): number | null {
  const [rest, setRest] = useState<number | null>(null);
  useEffect(() => {
    let timer = 0;
    const stop = hovered.subscribe((hover) => {
      window.clearTimeout(timer);
      if (hover === null) setRest(null);
      else timer = window.setTimeout(() => setRest(hover.moment), REST_MS);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, [hovered]);
  return rest;
}

/** `anchor`: the moment shown without a pointer. */
export function useHeld(
  client: Client,
  place: Query,
  anchor: number,
  stage: BlockStage,
  tiles: BlockTiles,
): HeldNow {
  const rest = useRest(stage);
  const rests = rest !== null && rest !== anchor;
  // The picture goes first: both share one processor.
  const drawn = tiles.tiles.length > 0;
  const ask = (moment: number | null): Query | null =>
    moment === null ? null : { ...place, moment };
  const anchored = useLive(client, "allocation_live", ask(drawn ? anchor : null)).data;
  const ofRest = useLive(client, "allocation_live", ask(rests ? rest : null));
  const rested = ofRest.stale ? null : ofRest.data;
  const answers = useMemo(
    () => signal<readonly (AllocationLiveResponse | null)[]>([]),
    [],
  );
  useEffect(() => {
    answers.value = [anchored, rested];
  }, [answers, anchored, rested]);
  const held = useMemo(
    () =>
      computed<Held | null>(() => {
        const { value: hover } = stage.hovered;
        const [own = null] = answers.value;
        const exact =
          hover === null
            ? own
            : answers.value.find((one) => one?.moment === hover.moment);
        if (exact !== null && exact !== undefined) return exactly(exact);
        // Holders arrive after their tile.
        return hover === null || tiles.version.value < 0
          ? null
          : followed(tiles, hover);
      }),
    [stage, tiles.tiles, tiles.version, answers],
  );
  return { held, live: rests ? (rested ?? anchored) : anchored, anchored };
}
