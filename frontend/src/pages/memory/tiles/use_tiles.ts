import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { ApiError, Client } from "../../../api/client";
import { useTileLoader, type TileSource } from "../../../api/tiles";
import type { AllocationHoldersResponse } from "../../../api/types.gen";
import type { BlockView } from "../../../widgets/block_stack/picture";
import { BlockTile, type TileSpan } from "../../../widgets/block_stack/tile";
import {
  holdersQuery,
  isSpent,
  isWhole,
  shownTiles,
  tileQuery,
  wantedTile,
  type TileSubject,
} from "./wanted";

/**
 * Cached tiles. A run takes about 50 bytes, and half as much again in the worker for
 * the shown tile.
 */
const MOST_KEPT = 5;
const MOST_RUNS = 150_000;

export interface BlockTiles {
  readonly tiles: readonly BlockTile[];
  readonly loading: boolean;
  readonly error: ApiError | null;
  /** By stack and column of a tile; null until loaded. */
  readonly holders: (tile: BlockTile) => HolderColumns | null;
  /** Increases when a tile or its holders arrive. */
  readonly version: ReadonlySignal<number>;
  readonly look: (at: BlockView, settled: boolean) => void;
}

function blockSource(
  client: Client,
  subject: TileSubject,
): TileSource<BlockView, TileSpan, BlockTile> {
  const { what, place, axis, colour } = subject;
  return {
    stamp: JSON.stringify(subject),
    kin: JSON.stringify([place, axis]),
    most: MOST_KEPT,
    wanted: (tiles, at) => wantedTile(tiles, at, axis),
    keyOf: JSON.stringify,
    isSpent,
    ask: async (span, signal) => {
      const query = tileQuery(subject, span);
      const picture =
        what === "allocations"
          ? await client.get(what, query, signal, false)
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

export function useTiles(client: Client, subject: TileSubject): BlockTiles {
  const key = JSON.stringify(subject);
  const source = useMemo(() => blockSource(client, subject), [client, key]);
  const { loader, version, error } = useTileLoader(source);
  const known = useMemo(() => new WeakMap<BlockTile, HolderColumns>(), []);
  // Subscribes, so that every arrival is drawn.
  const tiles = version.value < 0 ? [] : loader.shown;
  const waits = loader.loading || subject.what === "segments";
  const next = waits ? undefined : tiles.findLast((tile) => !known.has(tile));
  useEffect(() => {
    if (next === undefined) return undefined;
    const abort = new AbortController();
    const query = holdersQuery(subject, next.span);
    client.get("allocation_holders", query, abort.signal, false).then(
      (answer) => {
        known.set(next, new HolderColumns(answer));
        version.value += 1;
      },
      // The picture shows the error; the next view retries.
      () => undefined,
    );
    return () => abort.abort();
  }, [client, next]);
  return {
    ...{ tiles, loading: loader.loading, error, version },
    holders: (tile) => known.get(tile) ?? null,
    look: (at, settled) => loader.look(at, settled),
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
  at(column: number): Float64Array {
    return this.#sum(column);
  }

  /** Sums all changes up to the end of a column; `each` receives every new value. */
  #sum(last: number, each?: (slot: number, bytes: number) => void): Float64Array {
    const { column, slot, change } = this.answer;
    const held = new Float64Array(this.stack.length);
    for (let i = 0; i < change.length && (column[i] ?? 0) <= last; i += 1) {
      const own = slot[i] ?? 0;
      const bytes = (held[own] ?? 0) + (change[i] ?? 0);
      held[own] = bytes;
      each?.(own, bytes);
    }
    return held;
  }
}
