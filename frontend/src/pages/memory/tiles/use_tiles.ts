import { useEffect, useMemo } from "preact/hooks";
import type { Client, Query } from "../../../api/client";
import { useTileLoader, type TileSource } from "../../../api/tiles";
import type {
  AllocationHoldersResponse,
  AllocationColour,
} from "../../../api/types.gen";
import type { Viewport } from "../../../render/viewport";
import type { BlockAxisKind } from "../../../widgets/block_stack/axis";
import type { BlockView } from "../../../widgets/block_stack/picture";
import { BlockTile, type TileSpan } from "../../../widgets/block_stack/tile";

/**
 * Cached tiles. A run takes about 50 bytes, and half as much again in the worker for
 * the shown tile.
 */
const MOST_KEPT = 5;
const MOST_RUNS = 150_000;

export type BlockTiles = ReturnType<typeof useTiles>;

function blockSource(
  client: Client,
  subject: TileSubject,
): TileSource<BlockView, TileSpan, BlockTile> {
  const { kind, place, axis, colour } = subject;
  return {
    stamp: JSON.stringify(subject),
    kin: JSON.stringify([place, axis]),
    most: MOST_KEPT,
    wanted: (tiles, sight) => wantedTile(tiles, sight, axis),
    keyOf: JSON.stringify,
    isSpent,
    ask: async (span, signal) => {
      const query = tileQuery(subject, span);
      const picture =
        kind === "allocations"
          ? await client.get(kind, query, signal, false)
          : (await client.get("segment_timeline", query, signal, false)).picture;
      // Parsing and drawing in one task would block the page too long.
      await new Promise((resolve) => window.setTimeout(resolve));
      return new BlockTile(picture, span, colour);
    },
    isWhole,
    shown: shownTiles,
    share: (tile) => (isWhole(tile) ? 0 : tile.numRuns / MOST_RUNS),
    free: (tile) => tile.free(),
  };
}

export function useTiles(client: Client, subject: TileSubject) {
  const key = JSON.stringify(subject);
  const source = useMemo(() => blockSource(client, subject), [client, key]);
  const loader = useTileLoader(source);
  const { version } = loader;
  const holdersByTile = useMemo(() => new WeakMap<BlockTile, HolderColumns>(), []);
  // Subscribes, so that every arrival is drawn.
  const tiles = version.value < 0 ? [] : loader.shown;
  const waits = loader.loading || subject.kind === "segments";
  const next = waits ? undefined : tiles.findLast((tile) => !holdersByTile.has(tile));
  useEffect(() => {
    if (next === undefined) return undefined;
    const abort = new AbortController();
    const query = holdersQuery(subject, next.span);
    client.get("allocation_holders", query, abort.signal, false).then(
      (answer) => {
        holdersByTile.set(next, new HolderColumns(answer));
        version.value += 1;
      },
      // The picture shows the error; the next view retries.
      () => undefined,
    );
    return () => abort.abort();
  }, [client, next]);
  return {
    tiles,
    loading: loader.loading,
    error: loader.error.value,
    version,
    /** By stack and column of a tile; null until loaded. */
    holders: (tile: BlockTile) => holdersByTile.get(tile) ?? null,
    look: (sight: BlockView, settled: boolean) => loader.look(sight, settled),
  };
}

export class HolderColumns {
  /** By slot; the last one is all other stacks. */
  readonly stack: Int32Array;
  readonly moment: Int32Array;
  /** By slot but the last; see `Held`. */
  readonly category: Uint8Array;
  /** The highest value of each slot in any column. */
  readonly highest: Float64Array;

  constructor(private readonly answer: AllocationHoldersResponse) {
    const { stack, moment, category } = answer;
    this.stack = stack;
    this.moment = moment;
    this.category = category;
    this.highest = new Float64Array(stack.length);
    this.#sum(moment.length, (slot, bytes) => {
      if (bytes > (this.highest[slot] ?? 0)) this.highest[slot] = bytes;
    });
  }

  /** Bytes by slot in a column. */
  bytesAt(column: number): Float64Array {
    return this.#sum(column);
  }

  /** Sums all changes up to the end of a column; `each` receives every new value. */
  #sum(last: number, each?: (slot: number, bytes: number) => void): Float64Array {
    const { column, slot, change } = this.answer;
    const slotBytes = new Float64Array(this.stack.length);
    for (let i = 0; i < change.length && (column[i] ?? 0) <= last; i += 1) {
      const own = slot[i] ?? 0;
      const bytes = (slotBytes[own] ?? 0) + (change[i] ?? 0);
      slotBytes[own] = bytes;
      each?.(own, bytes);
    }
    return slotBytes;
  }
}

/** Half a screen more per side, for panning. */
const SLACK = 0.5;
/** Columns per device px: fewer are not sharp, more hide peaks. */
const LEAST_DENSITY = 0.9;
const MOST_DENSITY = 2.6;
/** Merged blocks taller than this, in device px, need a finer tile. */
const MOST_THIN_PX = 1.8;
const MOST_PX = 4_000;
const MOST_ROWS = 4_000;

export interface TileSubject {
  readonly kind: "allocations" | "segments";
  /** run, history, device, stream, pool. */
  readonly place: Query;
  readonly axis: BlockAxisKind;
  readonly order: string;
  readonly colour: AllocationColour;
}

function covers(tile: BlockTile, { view, world }: BlockView, slack: number): boolean {
  const extra = slack * (view.x1 - view.x0);
  const left = Math.max(world.x0, view.x0 - extra);
  const right = Math.min(world.x1, view.x1 + extra);
  const { y0, y1 } = tile.span;
  const tall = (y0 === null || y0 <= view.y1) && (y1 === null || y1 >= view.y0);
  return tile.low <= left && tile.high >= right && tall;
}

/** Fine enough for a view, and not so fine that peaks hide. */
function isSharp(tile: BlockTile, { view, size }: BlockView): boolean {
  const perPx = (view.x1 - view.x0) / size.widthPx;
  const perColumn = (tile.high - tile.low) / Math.max(1, tile.numColumns);
  const density = perPx / perColumn;
  const finest = tile.answer.axis === "event" && perColumn <= 1;
  if (density > MOST_DENSITY || (density < LEAST_DENSITY && !finest)) return false;
  const perByte = size.heightPx / (view.y0 - view.y1);
  const { minBytes, rest } = tile.answer;
  return minBytes * perByte <= MOST_THIN_PX || !rest.some((bytes) => bytes > 0);
}

export function isWhole({ span }: BlockTile): boolean {
  return span.low === null && span.y0 === null;
}

/** The tile of everything, then the best one for the view. */
export function shownTiles(
  tiles: readonly BlockTile[],
  sight: BlockView,
  before: readonly BlockTile[],
): readonly BlockTile[] {
  const whole = tiles.findLast(isWhole);
  if (whole === undefined) return before;
  const best = tiles.findLast((tile) => covers(tile, sight, 0) && isSharp(tile, sight));
  // Until a sharp one arrives the last one stays, while it shows anything.
  const last = before.at(-1) ?? whole;
  const { x0, x1 } = sight.view;
  const goesOn = tiles.includes(last) && last.low < x1 && last.high > x0;
  const part = best ?? (goesOn ? last : whole);
  return part === whole ? [whole] : [whole, part];
}

/** Tiles end at whole events or round times: equal views make equal requests. */
function unitOf({ x0, x1 }: Viewport, axis: BlockAxisKind): number {
  return axis === "event" ? 1 : 10 ** (Math.floor(Math.log10(x1 - x0)) - 3);
}

/** The next tile to request; null: the view is sharp and has room to pan. */
export function wantedTile(
  tiles: readonly BlockTile[],
  sight: BlockView,
  axis: BlockAxisKind,
): TileSpan | null {
  if (tiles.some((tile) => covers(tile, sight, SLACK / 4) && isSharp(tile, sight)))
    return null;
  const { view, world, size } = sight;
  if (!tiles.some(isWhole)) {
    const px = Math.min(MOST_PX, size.widthPx);
    const rows = Math.min(MOST_ROWS, size.heightPx);
    return { low: null, high: null, y0: null, y1: null, px, rows };
  }
  const extra = SLACK * (view.x1 - view.x0);
  const unit = unitOf(view, axis);
  const low = Math.max(world.x0, Math.floor((view.x0 - extra) / unit) * unit);
  const high = Math.min(world.x1, Math.ceil((view.x1 + extra) / unit) * unit);
  const whole = low <= world.x0 && high >= world.x1;
  const tall = view.y1 <= world.y1 && view.y0 >= world.y0;
  const height = view.y0 - view.y1;
  const y0 = tall ? null : Math.max(world.y1, Math.floor(view.y1 - SLACK * height));
  const y1 = tall ? null : Math.min(world.y0, Math.ceil(view.y0 + SLACK * height));
  const wide = (high - low) / (view.x1 - view.x0);
  const high_ = tall || y0 === null || y1 === null ? world.y0 : y1 - y0;
  return {
    low: whole ? null : low,
    high: whole ? null : high,
    y0,
    y1,
    px: Math.min(MOST_PX, Math.ceil(size.widthPx * wide)),
    rows: Math.min(MOST_ROWS, Math.ceil((size.heightPx * high_) / height)),
  };
}

/** The order of stacking does not matter. */
export function holdersQuery({ place, axis }: TileSubject, span: TileSpan): Query {
  const [low, high] = axis === "time" ? ["t0", "t1"] : ["e0", "e1"];
  return { ...place, axis, [low]: span.low, [high]: span.high, px: span.px };
}

export function tileQuery(subject: TileSubject, span: TileSpan): Query {
  const { order, colour } = subject;
  const { y0, y1, rows } = span;
  return { ...holdersQuery(subject, span), y0, y1, rows, order, colour };
}

/** Whether the answer would be useless by now. */
export function isSpent({ low, high }: TileSpan, { view }: BlockView): boolean {
  if (low === null || high === null) return false;
  const ratio = (view.x1 - view.x0) / (high - low);
  // Zoomed far in or out meanwhile.
  return high < view.x0 || low > view.x1 || ratio > 2 || ratio < 0.1;
}
