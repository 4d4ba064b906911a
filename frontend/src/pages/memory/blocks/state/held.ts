/** What is live at the moment looked at, by stack, and trees of it. Pure. */

import type { AllocationLiveResponse, CategoryGroup } from "../../../../api/types.gen";
import type { Theme } from "../../../../base/tokens";
import { categoryColour, siteColour } from "../../../../model/category";
import {
  OTHER_STACKS,
  type CallStacks,
  type FrameChoice,
} from "../../../../model/stacks/call_stacks";
import {
  difference,
  sandwich,
  type StackBytes,
} from "../../../../model/stacks/flame_sides";
import { buildFlame, type FlameTree } from "../../../../model/stacks/flame_tree";
import { atMoment, momentText } from "../../../../widgets/block_stack/axis";
import type { BlockTile } from "../../../../widgets/block_stack/tile";
import { nodeColours } from "../../../../widgets/flame/layout";
import type { FlameData } from "../../../../widgets/flame/types";
import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client, Query } from "../../../../api/client";
import { useOnce } from "../../../../api/use_once";
import type { BlockController } from "../../../../widgets/block_stack/controller";
import type { BlockHover } from "../../../../widgets/block_stack/inputs";
import type { Tiles } from "../../tiles/use_tiles";

/** Bytes by stack at one moment. */
export interface Held {
  readonly moment: number;
  /** Stacks by slot; the same object for as long as its trees can be used again. */
  readonly stack: Int32Array;
  readonly bytes: Float64Array;
  /** Blocks by slot; null where only bytes are known, while the pointer moves. */
  readonly blocks: Int32Array | null;
  /** Bytes by slot that boxes are ordered by, so that they keep their places. */
  readonly weights: Float64Array;
}

/** More stacks than this are narrower than a pixel: they are shown as one. */
const MOST_STACKS = 4_000;

/** An exact answer as what is held; the smallest of very many stacks as one. */
export function heldExactly(live: AllocationLiveResponse): Held {
  const { moment, stack, stackBytes, stackBlocks } = live;
  if (stack.length <= MOST_STACKS) {
    const weights = stackBytes;
    return { moment, stack, bytes: stackBytes, blocks: stackBlocks, weights };
  }
  const folded = (values: Iterable<number>): number =>
    Array.from(values)
      .slice(MOST_STACKS)
      .reduce((sum, one) => sum + one, 0);
  const bytes = Float64Array.of(
    ...stackBytes.subarray(0, MOST_STACKS),
    folded(stackBytes),
  );
  return {
    moment,
    stack: Int32Array.of(...stack.subarray(0, MOST_STACKS), OTHER_STACKS),
    bytes,
    blocks: Int32Array.of(...stackBlocks.subarray(0, MOST_STACKS), folded(stackBlocks)),
    weights: bytes,
  };
}

/** The order in which colours are kept, and the last one for mixtures. */
export const FLAME_GROUPS: readonly CategoryGroup[] = [
  "param",
  "optimizer",
  "activation",
  "grad",
  "comm",
  "temp",
  "unknown",
];

/** Rows of the palette behind the categories: lines with a colour of their own. */
const SITE = FLAME_GROUPS.length;
const CULPRIT = SITE + 1;

export function flamePalette(theme: Theme): readonly string[] {
  const mixture = theme === "dark" ? "#777b82" : "#b6bac0";
  const categories = FLAME_GROUPS.map((group) => categoryColour(theme, group));
  return [...categories, siteColour(theme, false), siteColour(theme, true), mixture];
}

/** Which category holds most of each stack's bytes, as a row of the palette. */
export type StackCategories = ReadonlyMap<number, number>;

/** Source lines that have a colour of their own. */
export interface Lines {
  /** The one that holds most of what has no category; "": none holds enough. */
  readonly site: string;
  /** Those a finding names. */
  readonly culprits: ReadonlySet<string>;
}

/** The site of the picture of everything. */
export function siteOf(tile: BlockTile | null): string {
  const groups = tile === null ? [] : [...tile.answer.groups, ...tile.answer.bands];
  const site = groups.find(
    ({ category, stack }) => category !== null && stack !== null,
  );
  return site?.label ?? "";
}

/** By stack: its row of the palette, where its line has a colour of its own. */
export function lineRows(
  stacks: CallStacks,
  { site, culprits }: Lines,
): (stack: number) => number | null {
  const rows = new Map<number, number>();
  for (let frame = 0; frame < stacks.numFrames; frame += 1) {
    const label = stacks.frameLabel(frame);
    if (culprits.has(label)) rows.set(frame, CULPRIT);
    else if (label === site) rows.set(frame, SITE);
  }
  return (stack) => rows.get(stacks.userFrame(stack)) ?? null;
}

/** From the blocks of a tile, and exactly from what is known of moments. */
export function stackCategories(
  tile: BlockTile | null,
  answers: readonly (AllocationLiveResponse | null)[],
  rowOfLine: (stack: number) => number | null = () => null,
): StackCategories {
  const found = new Map<number, number>();
  if (tile !== null) {
    const { lives, bands, groups } = tile.answer;
    const byBand = bands.some(({ category }) => category !== null);
    const of = (byBand ? bands : groups).map(({ category }) =>
      category === null ? -1 : FLAME_GROUPS.indexOf(category),
    );
    const row = byBand ? lives.band : lives.group;
    lives.stack.forEach((stack, slot) => {
      const category = of[row[slot] ?? -1] ?? -1;
      if (category >= 0) found.set(stack, category);
    });
  }
  for (const live of answers) {
    if (live === null) continue;
    const rows = live.categories.map(({ category }) => FLAME_GROUPS.indexOf(category));
    live.stack.forEach((stack, i) => {
      const category = rows[live.stackCategory[i] ?? -1] ?? -1;
      if (category >= 0) found.set(stack, category);
    });
  }
  for (const stack of found.keys()) {
    const row = rowOfLine(stack);
    if (row !== null) found.set(stack, row);
  }
  return found;
}

/** A part of what is held as a tree: the slots it is made of, and their colours. */
interface Grown {
  readonly tree: FlameTree;
  readonly colour: Uint8Array;
  /** Slots of what is held; null: all of them. */
  readonly slots: Int32Array | null;
}

export interface FlameMode {
  readonly choice: FrameChoice;
  readonly categories: StackCategories;
  readonly palette: readonly string[];
}

function pick(values: ArrayLike<number>, slots: Int32Array | null): Float64Array {
  if (slots === null) return Float64Array.from(values);
  return Float64Array.from(slots, (slot) => values[slot] ?? 0);
}

/**
 * Trees of what is held. A tree is built once for a set of stacks: while the pointer
 * moves only bytes change, and only they are summed up anew.
 */
export class Flames {
  readonly #stacks: CallStacks;
  readonly #mode: FlameMode;
  readonly #paths = new WeakMap<Int32Array, readonly Int32Array[]>();
  readonly #trees = new WeakMap<Int32Array, Grown>();
  readonly #sides = new WeakMap<
    Int32Array,
    { readonly frame: number; readonly callers: Grown; readonly callees: Grown }
  >();
  readonly #changes = new WeakMap<
    Int32Array,
    { readonly before: Held; readonly grown: Grown }
  >();

  constructor(stacks: CallStacks, mode: FlameMode) {
    this.#stacks = stacks;
    this.#mode = mode;
  }

  /** Paths from the root to the leaf, by slot. */
  paths(held: Held): readonly Int32Array[] {
    let paths = this.#paths.get(held.stack);
    if (paths === undefined) {
      paths = Array.from(held.stack, (one) =>
        this.#stacks.path(one, this.#mode.choice),
      );
      this.#paths.set(held.stack, paths);
    }
    return paths;
  }

  tree(held: Held): FlameData {
    let grown = this.#trees.get(held.stack);
    if (grown === undefined) {
      const tree = buildFlame(this.paths(held), held.weights);
      grown = { tree, colour: this.#colours(tree, held, null), slots: null };
      this.#trees.set(held.stack, grown);
    }
    return this.#data(grown, held, `live ${atMoment(held.moment)}`);
  }

  /** What calls a frame, and what it calls. */
  sandwich(
    held: Held,
    frame: number,
  ): { readonly callers: FlameData; readonly callees: FlameData } {
    let sides = this.#sides.get(held.stack);
    if (sides?.frame !== frame) {
      const found = sandwich(this.paths(held), held.weights, frame);
      const { slots } = found;
      const grown = (tree: FlameTree): Grown => {
        return { tree, colour: this.#colours(tree, held, slots), slots };
      };
      sides = { frame, callers: grown(found.callers), callees: grown(found.callees) };
      this.#sides.set(held.stack, sides);
    }
    return {
      callers: this.#data(sides.callers, held, "callers"),
      callees: this.#data(sides.callees, held, "callees"),
    };
  }

  /** What grew and what shrank since an earlier, or later, moment. */
  difference(before: Held, after: Held): FlameData {
    const earlier = foldedOnto(after, before);
    let known = this.#changes.get(after.stack);
    const found = difference(earlier, after);
    const order = new Map(Array.from(found.stack, (stack, i) => [stack, i]));
    if (known?.before !== before || known.grown.tree.leaf.length < found.stack.length) {
      const paths = Array.from(found.stack, (one) =>
        this.#stacks.path(one, this.#mode.choice),
      );
      const tree = buildFlame(paths, found.larger);
      const grown = { tree, colour: new Uint8Array(tree.numNodes), slots: found.stack };
      known = { before, grown };
      this.#changes.set(after.stack, known);
    }
    const { tree, slots } = known.grown;
    const inOrder = (values: Float64Array): Float64Array =>
      Float64Array.from(slots ?? [], (stack) => values[order.get(stack) ?? -1] ?? 0);
    return {
      tree,
      values: tree.sums(inOrder(found.larger)),
      colour: known.grown.colour,
      palette: this.#mode.palette,
      change: {
        before: tree.sums(inOrder(found.before)),
        after: tree.sums(inOrder(found.after)),
      },
      title: `${momentText(after.moment)} against ${momentText(before.moment)}`,
    };
  }

  #colours(tree: FlameTree, held: Held, slots: Int32Array | null): Uint8Array {
    const { categories, palette } = this.#mode;
    const mixture = palette.length - 1;
    const stacks = pick(held.stack, slots);
    const own = Array.from(stacks, (stack) => categories.get(stack) ?? -1);
    return nodeColours(tree, own, pick(held.weights, slots), mixture);
  }

  #data({ tree, colour, slots }: Grown, held: Held, title: string): FlameData {
    const { palette } = this.#mode;
    const values = tree.sums(slots === null ? held.bytes : pick(held.bytes, slots));
    return { tree, values, colour, palette, change: null, title };
  }
}

/** Where the smallest stacks are one, those of the other moment are too. */
function foldedOnto(after: Held, before: Held): StackBytes {
  if (!after.stack.includes(OTHER_STACKS)) return before;
  const known = new Set(after.stack);
  const stack: number[] = [];
  const bytes: number[] = [];
  let others = 0;
  before.stack.forEach((one, i) => {
    const own = before.bytes[i] ?? 0;
    if (known.has(one) && one !== OTHER_STACKS) {
      stack.push(one);
      bytes.push(own);
    } else others += own;
  });
  return { stack: [...stack, OTHER_STACKS], bytes: [...bytes, others] };
}

/**
 * What is live at the moment looked at. While the pointer moves over the picture it is
 * read from what came with the tile; where it rests, and where nothing points, the server
 * says it exactly.
 */
const EXACT = new WeakMap<AllocationLiveResponse, Held>();

export function exactly(live: AllocationLiveResponse): Held {
  let held = EXACT.get(live);
  if (held === undefined) {
    held = heldExactly(live);
    EXACT.set(live, held);
  }
  return held;
}

/** What the tile under the pointer says; null until its holders came. */
function followed({ loader, tiles }: Tiles, hover: BlockHover): Held | null {
  const { moment } = hover;
  const own = loader.holders(hover.tile);
  const whole = tiles[0];
  if (own === null && whole === undefined) return null;
  const holders = own ?? (whole === undefined ? null : loader.holders(whole));
  if (holders === null) return null;
  const column = own === null ? (whole?.columnAt(hover.x) ?? -1) : hover.column;
  if (column < 0) return null;
  return {
    moment: own === null ? (holders.moment[column] ?? moment) : moment,
    stack: holders.stack,
    bytes: holders.at(column),
    blocks: null,
    weights: holders.highest(),
  };
}

export interface HeldNow {
  readonly held: ReadonlySignal<Held | null>;
  /** The exact answer shown beside it: of the pointer's rest, else of the anchor. */
  readonly live: AllocationLiveResponse | null;
  /** Of the anchor alone. */
  readonly anchored: AllocationLiveResponse | null;
  readonly failed: boolean;
}

/** The pointer rests when it has not moved for this long. */
const REST_MS = 220;

/** What the pointer rests on; null while it moves, or points at nothing. */
export function useRest(controller: BlockController | null): BlockHover | null {
  const [rest, setRest] = useState<BlockHover | null>(null);
  useEffect(() => {
    if (controller === null) return undefined;
    let timer = 0;
    const stop = controller.hovered.subscribe((hover) => {
      window.clearTimeout(timer);
      if (hover === null) {
        setRest(null);
        return;
      }
      timer = window.setTimeout(() => setRest(hover), REST_MS);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
      setRest(null);
    };
  }, [controller]);
  return rest;
}

/** `anchor` is the moment shown while nothing points. */
export function useHeld(
  client: Client,
  place: Query,
  anchor: number,
  controller: BlockController | null,
  tiles: Tiles,
): HeldNow {
  const rest = useRest(controller)?.moment ?? null;
  // The picture goes first: both would share one processor.
  const drawn = tiles.tiles.length > 0;
  const anchorQuery = drawn ? { ...place, moment: anchor } : null;
  const anchorLive = useOnce(client, "allocation_live", anchorQuery);
  const restQuery =
    rest === null || rest === anchor ? null : { ...place, moment: rest };
  const restLive = useOnce(client, "allocation_live", restQuery);
  const anchored = anchorLive.data;
  const rested = restLive.stale ? null : restLive.data;
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
        const known = answers.value;
        // Holders arrive later than the tile they belong to.
        if (tiles.version.value < 0) return null;
        const hover = controller?.hovered.value ?? null;
        if (hover === null) {
          const [own] = known;
          return own === null || own === undefined ? null : exactly(own);
        }
        const found = known.find((one) => one?.moment === hover.moment);
        if (found !== null && found !== undefined) return exactly(found);
        return followed(tiles, hover);
      }),
    [controller, tiles.loader, tiles.tiles, tiles.version, answers],
  );
  return {
    held,
    live: rest === null || rest === anchor ? anchored : (rested ?? anchored),
    anchored,
    failed: anchorLive.error !== null,
  };
}
