/** One request at a time, always for the newest look; a useless one is aborted. */

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { isAbort, type ApiError } from "./client";

/** While a gesture goes on, requests begin at most this often. */
const PAUSE_MS = 180;
const RETRY_MS = 1_000;
/** By then nothing on the page shows an evicted tile. */
const FREED_AFTER_MS = 600;

export interface TileSource<Look, Wanted, Tile extends object> {
  /** Tiles of another stamp are of no use. */
  readonly stamp: string;
  /** What was shown stays until the first tile of the next picture of the same kin. */
  readonly kin?: string;
  /** null: all is there. */
  readonly wanted: (tiles: readonly Tile[], look: Look) => Wanted | null;
  /** A tile may be coarser than requested; the same request brings the same tile. */
  readonly keyOf: (wanted: Wanted) => string;
  /** The answer would be useless by now. */
  readonly isSpent: (wanted: Wanted, look: Look) => boolean;
  readonly ask: (wanted: Wanted, signal: AbortSignal) => Promise<Tile>;
  /** A tile of everything; the newest one is always cached. */
  readonly isWhole: (tile: Tile) => boolean;
  /** Coarse before fine; `before`: what was shown last. */
  readonly shown: (
    tiles: readonly Tile[],
    look: Look,
    before: readonly Tile[],
  ) => readonly Tile[];
  /** Cached tiles, besides that of everything. */
  readonly most: number;
  /** Share of the cache that a tile takes; 1 is all. */
  readonly share?: (tile: Tile) => number;
  readonly free?: (tile: Tile) => void;
}

export class TileLoader<Look, Wanted, Tile extends object> {
  /** Raised when tiles or the request under way change. */
  readonly version = signal(0);
  /** null: none, or recovered. */
  readonly error = signal<ApiError | null>(null);
  #source: TileSource<Look, Wanted, Tile> | null = null;
  #look: Look | null = null;
  #tiles: readonly Tile[] = [];
  #shown: readonly Tile[] = [];
  readonly #keys = new WeakMap<Tile, string>();
  readonly #alive = new Set<Tile>();
  #flight: { readonly wanted: Wanted; readonly abort: AbortController } | null = null;
  #begun = Number.NEGATIVE_INFINITY;
  #timer: number | null = null;
  #failed = false;

  get loading(): boolean {
    return this.#flight !== null;
  }

  /** Coarse before fine; the same array while nothing changes. */
  get shown(): readonly Tile[] {
    if (this.#source === null || this.#look === null) return this.#shown;
    const next = this.#source.shown(this.#tiles, this.#look, this.#shown);
    const same =
      next.length === this.#shown.length &&
      next.every((tile, i) => tile === this.#shown[i]);
    if (!same) this.#shown = next;
    return this.#shown;
  }

  get whole(): Tile | null {
    return this.#tiles.findLast((tile) => this.#source?.isWhole(tile)) ?? null;
  }

  about(source: TileSource<Look, Wanted, Tile>): void {
    const before = this.#source;
    if (before === source) return;
    this.#source = source;
    if (before?.stamp !== source.stamp) {
      this.#drop();
      this.#tiles = [];
      if (source.kin === undefined || source.kin !== before?.kin) this.#shown = [];
    }
    this.#next(true);
    this.#changed();
  }

  /** `settled`: nothing moves any more. */
  look(look: Look, settled: boolean): void {
    const before = this.#shown;
    this.#look = look;
    this.#next(settled);
    if (this.shown !== before) this.#changed();
  }

  close(): void {
    this.#drop();
    if (this.#timer !== null) window.clearTimeout(this.#timer);
    this.#timer = null;
    this.#source = null;
  }

  #changed(): void {
    this.version.value += 1;
  }

  #drop(): void {
    this.#flight?.abort.abort();
    this.#flight = null;
  }

  #next(settled: boolean): void {
    const [source, look] = [this.#source, this.#look];
    if (source === null || look === null || this.#failed) return;
    const wanted = source.wanted(this.#tiles, look);
    if (wanted === null) return;
    const key = source.keyOf(wanted);
    if (this.#tiles.some((tile) => this.#keys.get(tile) === key)) return;
    if (this.#flight !== null) {
      if (!source.isSpent(this.#flight.wanted, look)) return;
      this.#drop();
    }
    const pause = this.#begun + PAUSE_MS - performance.now();
    if (!settled && pause > 0) this.#later(pause);
    else this.#ask(source, wanted, key);
  }

  #later(delayMs: number): void {
    this.#timer ??= window.setTimeout(() => {
      this.#timer = null;
      this.#failed = false;
      this.#next(true);
    }, delayMs);
  }

  #ask(source: TileSource<Look, Wanted, Tile>, wanted: Wanted, key: string): void {
    const flight = { wanted, abort: new AbortController() };
    this.#flight = flight;
    this.#begun = performance.now();
    this.#changed();
    source.ask(wanted, flight.abort.signal).then(
      (tile) => {
        if (this.#flight !== flight) return;
        this.#flight = null;
        this.#keys.set(tile, key);
        this.#keep(source, tile);
        this.error.value = null;
        this.#changed();
        this.#next(true);
      },
      (error: unknown) => {
        if (this.#flight !== flight) return;
        this.#flight = null;
        if (isAbort(error)) return;
        this.#failed = true;
        this.error.value = error as ApiError;
        this.#later(RETRY_MS);
      },
    );
  }

  #keep(source: TileSource<Look, Wanted, Tile>, tile: Tile): void {
    this.#tiles = [...this.#tiles, tile];
    const { whole } = this;
    let share = 0;
    const newestFirst = [...this.#tiles].reverse().filter((kept, i) => {
      share += source.share?.(kept) ?? 0;
      // The newest stays whatever its size: it is on screen.
      return i === 0 || kept === whole || (i < source.most && share <= 1);
    });
    this.#tiles = newestFirst.reverse();
    const { free } = source;
    if (free === undefined) return;
    const used = new Set([...this.#tiles, ...this.shown]);
    this.#alive.add(tile);
    for (const aliveTile of this.#alive) {
      if (used.has(aliveTile)) continue;
      this.#alive.delete(aliveTile);
      window.setTimeout(() => {
        if (this.#source !== null) free(aliveTile);
      }, FREED_AFTER_MS);
    }
  }
}

export function useTileLoader<Look, Wanted, Tile extends object>(
  source: TileSource<Look, Wanted, Tile>,
): TileLoader<Look, Wanted, Tile> {
  const loader = useMemo(() => new TileLoader<Look, Wanted, Tile>(), []);
  useEffect(() => loader.about(source), [loader, source]);
  useEffect(() => () => loader.close(), [loader]);
  return loader;
}
