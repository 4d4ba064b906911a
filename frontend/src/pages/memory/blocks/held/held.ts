/**
 * Live bytes by stack. While the pointer moves they come from the tile; where it rests,
 * and without a pointer, the server returns exact ones.
 */

import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client, Query } from "../../../../api/client";
import type {
  AllocationLiveResponse,
  AllocationRangeResponse,
} from "../../../../api/types.gen";
import { useLive } from "../../../../api/live/use_live";
import type { Theme } from "../../../../base/tokens";
import { siteColour } from "../../../../model/category";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import { groupColours } from "../../../../widgets/block_stack/paint/colours";
import type { BlockHover } from "../../../../widgets/block_stack/picture";
import type { BlockStage } from "../../../../widgets/block_stack/stage";
import { numbersOf } from "../../../shared/table/columns";
import type { BlockTiles } from "../../tiles/use_tiles";

/** By slot, largest first; stacks are the same array while their trees can be reused. */
export interface LiveStacks extends Pick<
  AllocationLiveResponse,
  "moment" | "stack" | "stackBytes" | "stackCategory"
> {
  /** null while the pointer moves: only bytes are known. */
  readonly stackBlocks: Int32Array | null;
  /** The order of boxes, so that they stay in place; default: the bytes. */
  readonly weights?: Float64Array;
}

export interface HeldColours {
  readonly palette: readonly string[];
  readonly rows: (live: Pick<LiveStacks, "stack" | "stackCategory">) => Uint8Array;
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
  const rowsByStacks = new WeakMap<Int32Array, Uint8Array>();
  const rows: HeldColours["rows"] = ({ stack, stackCategory }) =>
    Uint8Array.from(stack, (id, slot) => {
      const named = culprits.size > 0 && culprits.has(stacks?.stackLabel(id) ?? "");
      const own = stackCategory[slot] ?? culprit;
      return named ? culprit : own < culprit ? own : culprit + 1;
    });
  return {
    palette,
    rows: (liveStacks) => {
      const cachedRows = rowsByStacks.get(liveStacks.stack) ?? rows(liveStacks);
      rowsByStacks.set(liveStacks.stack, cachedRows);
      return cachedRows;
    },
  };
}

/** From the tile under the pointer, else from that of everything; null: not loaded. */
function followed(tiles: BlockTiles, hover: BlockHover): LiveStacks | null {
  const [whole] = tiles.tiles;
  const tile = tiles.holders(hover.tile) === null ? whole : hover.tile;
  const holders = tile === undefined ? null : tiles.holders(tile);
  const column = tile?.columnAt(hover.x) ?? -1;
  if (holders === null || column < 0) return null;
  return {
    moment: holders.moment[column] ?? hover.moment,
    stack: holders.stack,
    stackBytes: holders.bytesAt(column),
    stackBlocks: null,
    weights: holders.highest,
    stackCategory: holders.category,
  };
}

/** Of no category: a mixture, see `heldColours`. */
const MIXTURE = 255;

/** Bytes by stack that were allocated in a range, or that still live at its end. */
export function stacksInRange(
  { last, table }: AllocationRangeResponse,
  bytes: "allocated" | "live",
  categories: AllocationLiveResponse["categories"],
): LiveStacks {
  const places = new Map(categories.map(({ key }, place) => [key, place]));
  return {
    moment: last.moment,
    stack: Int32Array.from(numbersOf(table, "allocated_at")),
    stackBytes: Float64Array.from(numbersOf(table, `${bytes}_bytes`)),
    stackBlocks: null,
    stackCategory: Uint8Array.from(
      table.colours,
      (category) => places.get(category) ?? MIXTURE,
    ),
  };
}

interface HeldNow {
  readonly liveStacks: ReadonlySignal<LiveStacks | null>;
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
  const liveStacks = useMemo(
    () =>
      computed<LiveStacks | null>(() => {
        const { value: hover } = stage.hovered;
        const [own = null] = answers.value;
        const exact =
          hover === null
            ? own
            : answers.value.find((answer) => answer?.moment === hover.moment);
        if (exact !== null && exact !== undefined) return exact;
        // Holders arrive after their tile.
        return hover === null || tiles.version.value < 0
          ? null
          : followed(tiles, hover);
      }),
    [stage, tiles.tiles, tiles.version, answers],
  );
  return { liveStacks, live: rests ? (rested ?? anchored) : anchored, anchored };
}
