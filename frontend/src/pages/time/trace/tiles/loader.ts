/** The tiles of the timeline: everything in sight coarsely first, then sharply. */

import { useMemo } from "preact/hooks";
import type { Client, Query } from "../../../../api/client";
import { useTileLoader, type Tiles, type TileSource } from "../../../../api/tiles";
import { type Layout, type Row, rowsBetween, tracksQuery } from "../plot/layout";
import { absolute } from "../state/params";
import { TraceTile } from "./tile";

const MOST_KEPT = 8;
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

interface WantedTile {
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

export function tileQuery(
  run: string,
  base: bigint,
  tracks: string,
  wanted: Omit<WantedTile, "rows">,
): Query {
  return {
    run,
    tracks,
    t0: absolute(base, Math.floor(wanted.lowNs)).toString(),
    t1: absolute(base, Math.ceil(wanted.highNs)).toString(),
    px: wanted.px,
  };
}

type TraceTiles = Tiles<Look, WantedTile, TraceTile>;

/** `stamp` names what the tiles are of: another one throws them away. */
export function useTraceTiles(
  client: Client,
  run: string,
  world: World,
  layout: Layout,
  stamp: string,
): TraceTiles {
  const source = useMemo((): TileSource<Look, WantedTile, TraceTile> => {
    const query = (wanted: WantedTile): Query =>
      tileQuery(run, world.base, tracksQuery(wanted.rows), wanted);
    return {
      stamp: `${run} ${stamp}`,
      most: MOST_KEPT,
      wanted: (tiles, look) => wantedTile(tiles, look, layout, world),
      keyOf: (wanted) => JSON.stringify(query(wanted)),
      isSpent: ({ lowNs, highNs }, look) => {
        const apart = highNs < look.lowNs || lowNs > look.highNs;
        return apart && (lowNs > world.lowNs || highNs < world.highNs);
      },
      ask: async (wanted, signal) => {
        const asked = query(wanted);
        const answer = await client.get("trace_slices", asked, signal, false);
        const tracks = new Set(wanted.rows.map(({ trackKey }) => trackKey));
        return new TraceTile(answer, world.base, wanted.highNs, tracks);
      },
      isWhole: (tile) => spans(tile, world.lowNs, world.highNs),
      shown: (tiles, look) => shownTiles(tiles, look, layout, world),
    };
  }, [client, run, world, layout, stamp]);
  return useTileLoader(source);
}
