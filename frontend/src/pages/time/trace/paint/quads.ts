/** Tiles as rectangles for the raster: what lies where, and which piece each is. Pure. */

import { PATTERN, type Quads } from "../../../../render/raster";
import type { TraceColours } from "./colours";
import { LANE_PX, laneTop, type Layout } from "../plot/layout";
import type { TraceTile } from "../tiles/tile";

/** What is drawn; ids of its quads are places in `tile` and `piece`. */
export interface Picture {
  readonly quads: Quads;
  readonly tiles: readonly TraceTile[];
  /** By quad: which of the tiles. */
  readonly tile: Uint8Array;
  /** By quad: which piece of it. */
  readonly piece: Int32Array;
  /** Where the timeline ends. */
  readonly endNs: number;
}

const LANE_GAP_PX = 1;

export function pictureOf(
  tiles: readonly TraceTile[],
  layout: Layout,
  colours: TraceColours,
  find: string,
  endNs: number,
): Picture {
  const most = tiles.reduce((sum, { numPieces }) => sum + numPieces, 0);
  const x0 = new Float64Array(most);
  const x1 = new Float64Array(most);
  const y0 = new Float64Array(most);
  const y1 = new Float64Array(most);
  const colour = new Uint32Array(most);
  const pattern = new Uint8Array(most);
  const of = new Uint8Array(most);
  const piece = new Int32Array(most);
  const wanted = find.toLocaleLowerCase();
  const finer = tiles[1];
  let n = 0;
  tiles.forEach((tile, which) => {
    const { answer } = tile;
    const tops = answer.lanes.map(({ track, level }) => {
      const row = layout.byTrack.get(track);
      // What is folded shows its outermost level.
      if (row === undefined || level >= row.lanes) return null;
      return laneTop(layout, track, level);
    });
    const finerHas = answer.lanes.map(({ track }) => finer?.tracks.has(track) === true);
    // By family and name: a tile has thousands of pieces, and hundreds of names.
    const looks = new Map<number, { readonly own: number; readonly lit: boolean }>();
    const lookOf = (i: number) => {
      const key = (answer.family[i] ?? 0) * 0x10000 + (answer.name[i] ?? 0);
      const known = looks.get(key);
      if (known !== undefined) return known;
      const name = tile.nameOf(i);
      const look = {
        own: colours.of(tile.familyOf(i), name),
        lit: wanted === "" || name.toLocaleLowerCase().includes(wanted),
      };
      looks.set(key, look);
      return look;
    };
    for (let i = 0; i < tile.numPieces; i += 1) {
      const lane = tile.lane[i] ?? 0;
      const top = tops[lane] ?? null;
      if (top === null) continue;
      const [start, end] = [tile.start[i] ?? 0, tile.end[i] ?? 0];
      if (which === 0 && finer !== undefined && finerHas[lane] === true) {
        if (start >= finer.lowNs && end <= finer.highNs) continue;
      }
      const count = answer.count[i] ?? 1;
      const { own, lit } = lookOf(i);
      const busy = ((answer.busy[i] ?? 0) * answer.unitNs) / Math.max(1, end - start);
      const drawn = count > 1 ? colours.ofBlock(own, busy) : own;
      x0[n] = start;
      x1[n] = end;
      y0[n] = top;
      y1[n] = top + LANE_PX - LANE_GAP_PX;
      colour[n] = lit ? drawn : colours.dimmed(drawn);
      pattern[n] = count > 1 ? PATTERN.hatched : PATTERN.solid;
      of[n] = which;
      piece[n] = i;
      n += 1;
    }
  });
  const id = Int32Array.from({ length: n }, (_, i) => i);
  return {
    quads: {
      x0: x0.subarray(0, n),
      x1: x1.subarray(0, n),
      y0: y0.subarray(0, n),
      y1: y1.subarray(0, n),
      colour: colour.subarray(0, n),
      id,
      pattern: pattern.subarray(0, n),
      seam: colours.background,
    },
    tiles,
    tile: of.subarray(0, n),
    piece: piece.subarray(0, n),
    endNs,
  };
}
