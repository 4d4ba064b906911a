/** The visible part is requested coarsely first, then sharply. */

import { useMemo } from "preact/hooks";
import type { Client, Query } from "../../../../api/client";
import { useTileLoader, type TileSource } from "../../../../api/tiles";
import type { Viewport } from "../../../../render/viewport";
import type { XRange } from "../../../../widgets/plot/range";
import { rowsBetween, tracksQuery, type Layout, type Row } from "../plot/layout";
import { absolute } from "../state/params";
import { TraceTile } from "./tile";

const MOST_KEPT = 8;
/** Half a window more per side, for panning. */
const SLACK = 0.5;
const MOST_PX = 8_000;

/** x in nanoseconds since the base, y in px of the layout. */
export interface Look extends Viewport {
  /** Device px. */
  readonly widthPx: number;
}

export interface World extends XRange {
  readonly base: bigint;
}

interface WantedTile extends XRange {
  readonly px: number;
  readonly rows: readonly Row[];
}

function tracksIn(layout: Layout, top: number, bottom: number): readonly Row[] {
  return rowsBetween(layout, top, bottom).filter(({ track }) => track !== null);
}

function holding(
  tiles: readonly TraceTile[],
  rows: readonly Row[],
): readonly TraceTile[] {
  return tiles.filter(({ tracks }) => rows.every(({ key }) => tracks.has(key)));
}

function spans(tile: XRange, { low, high }: XRange): boolean {
  return tile.low <= low && tile.high >= high;
}

/** With a margin of `share` per side, within the world. */
function seenOf({ x0, x1 }: Look, { low, high }: World, share = 0): XRange {
  const slack = share * (x1 - x0);
  return { low: Math.max(x0 - slack, low), high: Math.min(x1 + slack, high) };
}

/** As fine as pixels. */
function isSharp({ answer }: TraceTile, { x0, x1, widthPx }: Look): boolean {
  return 2 ** answer.zoom <= ((x1 - x0) / widthPx) * 1.01 || answer.zoom === 0;
}

/** Coarse before fine; coarse ones only where the finer one does not reach. */
export function shownTiles(
  tiles: readonly TraceTile[],
  look: Look,
  layout: Layout,
  world: World,
): readonly TraceTile[] {
  const rows = tracksIn(layout, look.y0, look.y1);
  const seen = seenOf(look, world);
  const full = holding(tiles, rows);
  const best = full.findLast((tile) => spans(tile, seen) && isSharp(tile, look));
  if (best !== undefined) return [best];
  const whole = full.findLast((tile) => spans(tile, world));
  // Until a sharp one arrives: the finest that shows a part of it.
  const part = tiles.findLast(
    (tile) =>
      tile !== whole &&
      tile.low < seen.high &&
      tile.high > seen.low &&
      rows.some(({ key }) => tile.tracks.has(key)),
  );
  return [whole, part].filter((tile) => tile !== undefined);
}

/** null: all is there. */
export function wantedTile(
  tiles: readonly TraceTile[],
  look: Look,
  layout: Layout,
  world: World,
): WantedTile | null {
  const { y0, y1, widthPx } = look;
  const span = look.x1 - look.x0;
  const rows = tracksIn(layout, y0, y1);
  const seen = seenOf(look, world);
  if (rows.length === 0 || !(seen.high > seen.low)) return null;
  const around = tracksIn(layout, 2 * y0 - y1, 2 * y1 - y0);
  const full = holding(tiles, rows);
  if (!full.some((tile) => spans(tile, world))) {
    const { low, high } = world;
    return { low, high, px: Math.min(MOST_PX, widthPx), rows: around };
  }
  const near = seenOf(look, world, SLACK / 4);
  if (full.some((tile) => spans(tile, near) && isSharp(tile, look))) return null;
  // Round ends: similar views make equal requests.
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(span)) - 4);
  const wide = seenOf(look, world, SLACK);
  const low = Math.max(world.low, Math.floor(wide.low / unit) * unit);
  const high = Math.min(world.high, Math.ceil(wide.high / unit) * unit);
  const px = Math.ceil((widthPx * (high - low)) / span);
  return { low, high, px: Math.min(MOST_PX, px), rows: around };
}

export function tileQuery(
  run: string,
  base: bigint,
  tracks: string,
  { low, high, px }: Omit<WantedTile, "rows">,
): Query {
  const [t0, t1] = [absolute(base, Math.floor(low)), absolute(base, Math.ceil(high))];
  return { run, tracks, t0, t1, px };
}

/** A new `stamp` drops all tiles. */
export function useTraceTiles(
  client: Client,
  run: string,
  world: World,
  layout: Layout,
  stamp: string,
) {
  const source = useMemo((): TileSource<Look, WantedTile, TraceTile> => {
    const query = (wanted: WantedTile): Query =>
      tileQuery(run, world.base, tracksQuery(wanted.rows), wanted);
    return {
      stamp: `${run} ${stamp}`,
      most: MOST_KEPT,
      wanted: (tiles, look) => wantedTile(tiles, look, layout, world),
      keyOf: (wanted) => JSON.stringify(query(wanted)),
      isSpent: (wanted, { x0, x1 }) =>
        (wanted.high < x0 || wanted.low > x1) && !spans(wanted, world),
      ask: async (wanted, signal) => {
        const asked = query(wanted);
        const answer = await client.get("trace_slices", asked, signal, false);
        const tracks = new Set(wanted.rows.map(({ key }) => key));
        return new TraceTile(answer, world.base, wanted.high, tracks);
      },
      isWhole: (tile) => spans(tile, world),
      shown: (tiles, look) => shownTiles(tiles, look, layout, world),
    };
  }, [client, run, world, layout, stamp]);
  return useTileLoader(source);
}
