/**
 * Which tiles of the timeline are asked for, and when: everything in sight coarsely
 * first, then sharply what is looked at. One request at a time, always for the newest
 * look; tiles are kept for the way back.
 */

import {
  isAbort,
  type ApiError,
  type Client,
  type Query,
} from "../../../../api/client";
import { type Layout, type Row, rowsBetween, tracksQuery } from "../plot/layout";
import { absolute } from "../state/params";
import { TraceTile } from "./tile";
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";

const MOST_KEPT = 8;
const PAUSE_MS = 120;
const RETRY_MS = 1_500;
/** Half a window more on either side, so that panning has slack. */
const SLACK = 0.5;
const MOST_PX = 8_000;

export interface Look {
  readonly lowNs: number;
  readonly highNs: number;
  readonly topPx: number;
  readonly bottomPx: number;
  /** Device px. */
  readonly widthPx: number;
}

export interface World {
  readonly base: bigint;
  readonly lowNs: number;
  readonly highNs: number;
}

export interface WantedTile {
  readonly lowNs: number;
  readonly highNs: number;
  readonly px: number;
  readonly rows: readonly Row[];
}

/** Tracks whose slices can be drawn in a stretch of heights. */
function tracksIn(layout: Layout, top: number, bottom: number): readonly Row[] {
  return rowsBetween(layout, top, bottom).filter(({ kind }) => kind === "track");
}

function holds(tile: TraceTile, rows: readonly Row[]): boolean {
  return rows.every(({ trackKey }) => tile.tracks.has(trackKey));
}

function spans(tile: TraceTile, low: number, high: number): boolean {
  return tile.lowNs <= low && tile.highNs >= high;
}

/** Whether a tile is as fine as pixels are. */
function isSharp(tile: TraceTile, look: Look): boolean {
  const perPx = (look.highNs - look.lowNs) / look.widthPx;
  return 2 ** tile.answer.zoom <= perPx * 1.01 || tile.answer.zoom === 0;
}

/** The tiles to show, coarse before fine: of what the finer one does not reach. */
export function shownTiles(
  tiles: readonly TraceTile[],
  look: Look,
  layout: Layout,
  world: World,
): readonly TraceTile[] {
  const rows = tracksIn(layout, look.topPx, look.bottomPx);
  const low = Math.max(look.lowNs, world.lowNs);
  const high = Math.min(look.highNs, world.highNs);
  const best = tiles.findLast(
    (tile) => spans(tile, low, high) && holds(tile, rows) && isSharp(tile, look),
  );
  if (best !== undefined) return [best];
  const whole = tiles.findLast(
    (tile) => spans(tile, world.lowNs, world.highNs) && holds(tile, rows),
  );
  // The finest that shows a part of it, until a sharp one is there.
  const part = tiles
    .filter((tile) => tile !== whole && tile.lowNs < high && tile.highNs > low)
    .filter((tile) => rows.some(({ trackKey }) => tile.tracks.has(trackKey)))
    .at(-1);
  return [whole, part].filter((tile) => tile !== undefined);
}

/** What to ask for next; null where all is there. */
export function wantedTile(
  tiles: readonly TraceTile[],
  look: Look,
  layout: Layout,
  world: World,
): WantedTile | null {
  const rows = tracksIn(layout, look.topPx, look.bottomPx);
  if (rows.length === 0 || !(look.highNs > look.lowNs)) return null;
  const screen = look.bottomPx - look.topPx;
  const around = tracksIn(layout, look.topPx - screen, look.bottomPx + screen);
  const low = Math.max(look.lowNs, world.lowNs);
  const high = Math.min(look.highNs, world.highNs);
  if (high <= low) return null;
  const whole = tiles.some(
    (tile) => spans(tile, world.lowNs, world.highNs) && holds(tile, rows),
  );
  if (!whole) {
    return {
      lowNs: world.lowNs,
      highNs: world.highNs,
      px: Math.min(MOST_PX, look.widthPx),
      rows: around,
    };
  }
  const span = look.highNs - look.lowNs;
  const slack = (SLACK * span) / 4;
  const near = [
    Math.max(world.lowNs, low - slack),
    Math.min(world.highNs, high + slack),
  ];
  const sharp = tiles.some(
    (tile) =>
      spans(tile, near[0] ?? low, near[1] ?? high) &&
      holds(tile, rows) &&
      isSharp(tile, look),
  );
  if (sharp) return null;
  // Round ends: looks that are nearly the same ask the same.
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(span)) - 4);
  const from = Math.max(
    world.lowNs,
    Math.floor((look.lowNs - SLACK * span) / unit) * unit,
  );
  const to = Math.min(
    world.highNs,
    Math.ceil((look.highNs + SLACK * span) / unit) * unit,
  );
  const px = Math.ceil((look.widthPx * (to - from)) / span);
  return { lowNs: from, highNs: to, px: Math.min(MOST_PX, px), rows: around };
}

export function tileQuery(run: string, base: bigint, wanted: WantedTile): Query {
  return {
    run,
    tracks: tracksQuery(wanted.rows),
    t0: absolute(base, Math.floor(wanted.lowNs)).toString(),
    t1: absolute(base, Math.ceil(wanted.highNs)).toString(),
    px: wanted.px,
  };
}

export interface TraceLoaderEvents {
  readonly onTiles: () => void;
  readonly onFailure: (error: ApiError | null) => void;
}

export class TraceLoader {
  readonly #client: Client;
  readonly #run: string;
  readonly #events: TraceLoaderEvents;
  #tiles: TraceTile[] = [];
  #asked = new Set<string>();
  #world: World | null = null;
  #layout: Layout | null = null;
  #look: Look | null = null;
  #stamp = "";
  #flight: { readonly wanted: WantedTile; readonly abort: AbortController } | null =
    null;
  #begun = 0;
  #timer: number | null = null;

  constructor(client: Client, run: string, events: TraceLoaderEvents) {
    this.#client = client;
    this.#run = run;
    this.#events = events;
  }

  get loading(): boolean {
    return this.#flight !== null;
  }

  /** What there is: another `stamp` means that older tiles no longer hold. */
  about(world: World, layout: Layout, stamp: string): void {
    if (stamp !== this.#stamp) {
      this.#flight?.abort.abort();
      this.#flight = null;
      this.#asked.clear();
      this.#tiles = [];
      this.#stamp = stamp;
    }
    const isOther = layout !== this.#layout;
    this.#world = world;
    this.#layout = layout;
    this.#next(true);
    // Tiles that are there already may be shown for it.
    if (isOther) this.#events.onTiles();
  }

  look(look: Look, settled: boolean): void {
    this.#look = look;
    this.#next(settled);
  }

  /** Coarse before fine. */
  get shown(): readonly TraceTile[] {
    if (this.#look === null || this.#layout === null || this.#world === null) return [];
    return shownTiles(this.#tiles, this.#look, this.#layout, this.#world);
  }

  /** A tile of the whole time, of whatever tracks. */
  get whole(): TraceTile | null {
    const world = this.#world;
    if (world === null) return null;
    return (
      this.#tiles.findLast((tile) => spans(tile, world.lowNs, world.highNs)) ?? null
    );
  }

  close(): void {
    this.#flight?.abort.abort();
    this.#flight = null;
    if (this.#timer !== null) window.clearTimeout(this.#timer);
    this.#timer = null;
    this.#world = null;
  }

  #next(settled: boolean): void {
    const [look, layout, world] = [this.#look, this.#layout, this.#world];
    if (look === null || layout === null || world === null) return;
    const wanted = wantedTile(this.#tiles, look, layout, world);
    if (wanted === null) return;
    const query = tileQuery(this.#run, world.base, wanted);
    const key = JSON.stringify(query);
    // What came may be coarser than hoped for; asking again brings the same.
    if (this.#asked.has(key)) return;
    if (this.#flight !== null) {
      const { lowNs, highNs } = this.#flight.wanted;
      const apart = highNs < look.lowNs || lowNs > look.highNs;
      const isWhole = lowNs <= world.lowNs && highNs >= world.highNs;
      if (!apart || isWhole) return;
      this.#flight.abort.abort();
      this.#flight = null;
    }
    const pause = this.#begun + PAUSE_MS - performance.now();
    if (!settled && pause > 0) {
      this.#later(pause);
      return;
    }
    this.#ask(wanted, query, key, world.base);
  }

  #later(delayMs: number): void {
    this.#timer ??= window.setTimeout(() => {
      this.#timer = null;
      this.#next(true);
    }, delayMs);
  }

  #ask(wanted: WantedTile, query: Query, key: string, base: bigint): void {
    const abort = new AbortController();
    const flight = { wanted, abort };
    this.#flight = flight;
    this.#begun = performance.now();
    this.#events.onTiles();
    this.#client.get("trace_slices", query, abort.signal, false).then(
      (answer) => {
        if (this.#flight !== flight) return;
        this.#flight = null;
        this.#asked.add(key);
        const tracks = new Set(wanted.rows.map(({ trackKey }) => trackKey));
        this.#keep(new TraceTile(answer, base, wanted.highNs, tracks), key);
        this.#events.onFailure(null);
        this.#events.onTiles();
        this.#next(true);
      },
      (error: unknown) => {
        if (this.#flight !== flight) return;
        this.#flight = null;
        if (isAbort(error)) return;
        this.#events.onFailure(error as ApiError);
        this.#later(RETRY_MS);
      },
    );
  }

  #keep(tile: TraceTile, key: string): void {
    this.#tiles.push(tile);
    this.#keys.set(tile, key);
    while (this.#tiles.length > MOST_KEPT) {
      // The newest one of everything stays.
      const whole = this.whole;
      const oldest = this.#tiles.find((one) => one !== whole);
      if (oldest === undefined) return;
      this.#tiles = this.#tiles.filter((one) => one !== oldest);
      this.#asked.delete(this.#keys.get(oldest) ?? "");
    }
  }

  readonly #keys = new WeakMap<TraceTile, string>();
}

export interface TraceTiles {
  readonly loader: TraceLoader;
  readonly version: ReadonlySignal<number>;
  readonly error: ApiError | null;
}

/** `stamp` names what the tiles are of: another one throws them away. */
export function useTraceTiles(
  client: Client,
  run: string,
  world: World,
  layout: Layout,
  stamp: string,
): TraceTiles {
  const version = useSignal(0);
  const [error, setError] = useState<ApiError | null>(null);
  const loader = useMemo(
    () =>
      new TraceLoader(client, run, {
        onTiles: () => {
          version.value += 1;
        },
        onFailure: setError,
      }),
    [client, run, version],
  );
  useEffect(() => loader.about(world, layout, stamp), [loader, world, layout, stamp]);
  useEffect(() => () => loader.close(), [loader]);
  return { loader, version, error };
}
