/**
 * When parts of the picture are asked for, and which are kept: one tile of everything,
 * and finer ones of what is looked at. Of requests only the newest counts; one whose part
 * is out of sight is given up. Tiles are kept for the way back.
 */

import { isAbort, type ApiError, type Client, type Query } from "../../../api/client";
import type { AllocationsResponse } from "../../../api/types.gen";
import { BlockTile, WHOLE } from "../../../widgets/block_stack/tile";
import { HolderColumns } from "./holders";
import {
  bestTile,
  holdersQuery,
  isOutOfSight,
  MOST_PX,
  MOST_ROWS,
  tileQuery,
  wantedTile,
  type TileSubject,
  type TileView,
  type WantedTile,
} from "./wanted";

/**
 * Tiles of parts that are kept, and the runs of all of them: some 50 bytes each, and half
 * as much again in the worker for the one that is shown.
 */
const MOST_KEPT = 5;
const MOST_RUNS = 150_000;
/** By then nothing on the page shows a tile that is not kept. */
const FREED_AFTER_MS = 600;
/** While a gesture goes on, requests begin at most this often. */
const PAUSE_MS = 220;
/** After a failure the next request waits. */
const RETRY_MS = 1_000;
interface Kept {
  readonly key: string;
  readonly wanted: WantedTile;
  readonly tile: BlockTile;
}

export interface TileEvents {
  /** Tiles, from the coarsest to the finest, or what is under way, have changed. */
  readonly onTiles: () => void;
  readonly onFailure: (error: ApiError) => void;
}

export class TileLoader {
  readonly #client: Client;
  readonly #events: TileEvents;
  #subject: TileSubject | null = null;
  #at: TileView | null = null;
  #whole: Kept | null = null;
  #kept: Kept[] = [];
  #shown: readonly BlockTile[] = [];
  /** All whose blocks are in memory. */
  readonly #alive = new Set<BlockTile>();
  #flight: { readonly wanted: WantedTile; readonly abort: AbortController } | null =
    null;
  #beginning = 0;
  #timer: number | null = null;
  #failed = false;
  readonly #holders = new WeakMap<BlockTile, HolderColumns>();
  #holdersFlight: AbortController | null = null;
  #holdersKey = "";

  constructor(client: Client, events: TileEvents) {
    this.#client = client;
    this.#events = events;
  }

  /** From the coarsest to the finest. */
  get tiles(): readonly BlockTile[] {
    return this.#shown;
  }

  get loading(): boolean {
    return this.#flight !== null;
  }

  holders(tile: BlockTile): HolderColumns | null {
    return this.#holders.get(tile) ?? null;
  }

  /** Another picture. Older tiles stay until the first of it, where they fit its axes. */
  about(subject: TileSubject): void {
    const before = this.#subject;
    if (before !== null && keyOf(before) === keyOf(subject)) return;
    const samePlace =
      before !== null &&
      JSON.stringify(before.place) === JSON.stringify(subject.place) &&
      before.axis === subject.axis;
    this.#subject = subject;
    this.#drop();
    this.#whole = null;
    this.#kept = [];
    if (!samePlace) {
      this.#shown = [];
      this.#events.onTiles();
    }
    this.#next(true);
  }

  /** What is looked at; `settled` once nothing moves. */
  look(at: TileView, settled: boolean): void {
    this.#at = at;
    this.#choose();
    this.#next(settled);
  }

  /** Ask again after a failure. */
  retry(): void {
    this.#failed = false;
    this.#next(true);
  }

  close(): void {
    this.#drop();
    if (this.#timer !== null) window.clearTimeout(this.#timer);
    this.#timer = null;
    this.#subject = null;
  }

  #drop(): void {
    this.#flight?.abort.abort();
    this.#flight = null;
    this.#holdersFlight?.abort();
    this.#holdersFlight = null;
    this.#holdersKey = "";
  }

  #known(): readonly BlockTile[] {
    const parts = this.#kept.map(({ tile }) => tile);
    return this.#whole === null ? parts : [this.#whole.tile, ...parts];
  }

  /** Megabytes a tile would else lie about until the collector comes by. */
  #freeOthers(): void {
    const used = new Set([...this.#known(), ...this.#shown]);
    for (const tile of this.#alive) {
      if (used.has(tile)) continue;
      this.#alive.delete(tile);
      window.setTimeout(() => {
        if (this.#subject !== null) tile.free();
      }, FREED_AFTER_MS);
    }
  }

  /** The tile of everything, and over it the one that shows the view best. */
  #choose(): void {
    if (this.#whole === null || this.#at === null) return;
    const whole = this.#whole.tile;
    const best = bestTile(this.#known(), this.#at);
    const before = this.#shown.at(-1) ?? null;
    // Until a sharp one is there the last one goes on, as long as it shows anything.
    const { view } = this.#at;
    const goesOn =
      before !== null &&
      this.#known().includes(before) &&
      before.low < view.x1 &&
      before.high > view.x0;
    const part = best ?? (goesOn ? before : null);
    const next = part === null || part === whole ? [whole] : [whole, part];
    if (
      next.length === this.#shown.length &&
      next.every((t, i) => t === this.#shown[i])
    ) {
      return;
    }
    this.#shown = next;
    this.#events.onTiles();
  }

  /** What has to be asked for now; the tile of everything first. */
  #wanted(): WantedTile | null {
    const at = this.#at;
    if (at === null) return null;
    if (this.#whole === null) {
      const { widthPx, heightPx } = at.size;
      const px = Math.min(MOST_PX, widthPx);
      return { span: WHOLE, px, rows: Math.min(MOST_ROWS, heightPx) };
    }
    const wanted = wantedTile(this.#known(), at, this.#subject?.axis ?? "event");
    // What came may be coarser than hoped for; asking again brings the same.
    const span = JSON.stringify(wanted);
    const known = [this.#whole, ...this.#kept];
    return known.some((one) => JSON.stringify(one.wanted) === span) ? null : wanted;
  }

  #next(settled: boolean): void {
    if (this.#subject === null || this.#failed) return;
    const wanted = this.#wanted();
    if (wanted === null) {
      if (this.#flight === null) this.#askHolders();
      return;
    }
    if (this.#flight !== null) {
      if (!isOutOfSight(this.#flight.wanted, this.#at)) return;
      this.#flight.abort.abort();
      this.#flight = null;
    }
    const pause = this.#beginning + PAUSE_MS - performance.now();
    if (!settled && pause > 0) {
      this.#later(pause);
      return;
    }
    this.#ask(this.#subject, wanted);
  }

  #later(delayMs: number): void {
    this.#timer ??= window.setTimeout(() => {
      this.#timer = null;
      this.#next(true);
    }, delayMs);
  }

  #ask(subject: TileSubject, wanted: WantedTile): void {
    const abort = new AbortController();
    const flight = { wanted, abort };
    this.#flight = flight;
    this.#beginning = performance.now();
    // Holders wait: the picture goes first.
    this.#holdersFlight?.abort();
    this.#holdersFlight = null;
    this.#holdersKey = "";
    this.#events.onTiles();
    const query = tileQuery(subject, wanted);
    this.#picture(subject, query, abort.signal).then(
      (answer) => {
        if (this.#flight !== flight) return;
        this.#flight = null;
        const tile = new BlockTile(answer, wanted.span, subject.colour);
        this.#alive.add(tile);
        this.#keep({ key: JSON.stringify(query), wanted, tile });
        this.#choose();
        this.#freeOthers();
        this.#events.onTiles();
        this.#next(true);
      },
      (error: unknown) => {
        if (this.#flight !== flight) return;
        this.#flight = null;
        if (!isAbort(error)) this.#fail(error as ApiError);
      },
    );
  }

  async #picture(
    { what }: TileSubject,
    query: Query,
    signal: AbortSignal,
  ): Promise<AllocationsResponse> {
    if (what === "allocations") return this.#client.get(what, query, signal, false);
    const { picture } = await this.#client.get(
      "segment_timeline",
      query,
      signal,
      false,
    );
    return picture;
  }

  #keep(kept: Kept): void {
    if (
      kept.wanted.span.low === null &&
      kept.wanted.span.y0 === null &&
      this.#whole === null
    ) {
      this.#whole = kept;
      return;
    }
    const all = [...this.#kept.filter(({ key }) => key !== kept.key), kept];
    // The newest is kept whatever its size: it is what is looked at.
    this.#kept = all.slice(-MOST_KEPT).filter((one, i, last) => {
      const after = last.slice(i + 1).reduce((sum, { tile }) => sum + tile.numRuns, 0);
      return one === kept || after + one.tile.numRuns <= MOST_RUNS;
    });
  }

  #fail(error: ApiError): void {
    this.#failed = true;
    this.#events.onFailure(error);
    this.#timer ??= window.setTimeout(() => {
      this.#timer = null;
      this.retry();
    }, RETRY_MS);
  }

  /** Who holds what in the columns shown: the finest tile's, else that of everything. */
  #askHolders(): void {
    const subject = this.#subject;
    if (subject?.what === "segments") return;
    const tile = this.#shown.findLast((one) => !this.#holders.has(one));
    if (subject === null || tile === undefined) return;
    const kept = [this.#whole, ...this.#kept].find((one) => one?.tile === tile);
    if (kept === undefined || kept === null) return;
    const query = holdersQuery(subject, kept.wanted);
    const key = JSON.stringify(query);
    if (this.#holdersKey === key) return;
    this.#holdersFlight?.abort();
    const abort = new AbortController();
    this.#holdersFlight = abort;
    this.#holdersKey = key;
    this.#client.get("allocation_holders", query, abort.signal, false).then(
      (answer) => {
        if (this.#holdersFlight !== abort) return;
        this.#holdersFlight = null;
        this.#holders.set(tile, new HolderColumns(answer));
        this.#events.onTiles();
        this.#next(true);
      },
      () => {
        if (this.#holdersFlight !== abort) return;
        // The picture says what is wrong; the next look asks again.
        this.#holdersFlight = null;
        this.#holdersKey = "";
      },
    );
  }
}

function keyOf(subject: TileSubject): string {
  return JSON.stringify(subject);
}
