import type { Quads } from "../../../../render/raster/raster";
import { LANE_PX, laneTop, type Layout } from "../plot/layout";
import type { Piece, TraceTile } from "../tiles/tile";
import type { TraceFamily } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { partColour, pixelOf } from "../../../../render/palette";
import { mixed } from "../../../../widgets/block_stack/paint/colours";

export interface Picture {
  readonly quads: Quads;
  readonly tiles: readonly TraceTile[];
  readonly pieceOf: (id: number) => Piece | null;
}

const LANE_GAP_PX = 1;

export function pictureOf(
  tiles: readonly TraceTile[],
  layout: Layout,
  colours: TraceColours,
  find: string,
): Picture {
  const most = tiles.reduce((sum, { numPieces }) => sum + numPieces, 0);
  const x0 = new Float64Array(most);
  const x1 = new Float64Array(most);
  const y0 = new Float64Array(most);
  const y1 = new Float64Array(most);
  const colour = new Uint32Array(most);
  const of = new Uint8Array(most);
  const piece = new Int32Array(most);
  const wanted = find.toLocaleLowerCase();
  const finer = tiles[1];
  let n = 0;
  tiles.forEach((tile, which) => {
    const { answer } = tile;
    const tops = answer.lanes.map(({ track, level }) => {
      const row = layout.byTrack.get(track);
      // A folded row shows its outermost level; instants are not rectangles.
      const isShown = row !== undefined && level >= 0 && level < row.lanes;
      return isShown ? laneTop(layout, track, level) : null;
    });
    const finerHas = answer.lanes.map(({ track }) => finer?.tracks.has(track) === true);
    // Cached by family and name: a tile has thousands of pieces, and hundreds of names.
    const looks = new Map<number, { readonly own: number; readonly lit: boolean }>();
    const lookOf = (i: number) => {
      const key = (answer.family[i] ?? 0) * 0x10000 + (answer.name[i] ?? 0);
      const cachedLook = looks.get(key);
      if (cachedLook !== undefined) return cachedLook;
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
        if (start >= finer.low && end <= finer.high) continue;
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
      of[n] = which;
      piece[n] = i;
      n += 1;
    }
  });
  return {
    quads: {
      x0: x0.subarray(0, n),
      x1: x1.subarray(0, n),
      y0: y0.subarray(0, n),
      y1: y1.subarray(0, n),
      colour: colour.subarray(0, n),
      seam: colours.background,
    },
    tiles,
    pieceOf: (id) => tiles[of[id] ?? -1]?.piece(piece[id] ?? 0) ?? null,
  };
}

/** FNV-1a: the same for a name whatever else is drawn. */
export function nameHash(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  }
  return hash >>> 0;
}

/** Limit of the relative change in lightness. */
const VARIES = 0.16;

export class TraceColours {
  readonly background: number;
  readonly #dark: number;

  constructor(readonly theme: Theme) {
    this.background = pixelOf(tokens(theme).bg);
    this.#dark = pixelOf(theme === "dark" ? "#000000" : "#202428");
  }

  /** 0xAABBGGRR. */
  of(family: TraceFamily, name: string): number {
    const base = pixelOf(partColour(this.theme, family));
    const share = ((nameHash(name) % 9) / 4 - 1) * VARIES;
    const towards = share < 0 ? this.#dark : this.background;
    return mixed(base, towards, 1 - Math.abs(share));
  }

  /** By the busy share; always lighter than a slice. */
  ofBlock(colour: number, busy: number): number {
    return mixed(colour, this.background, 0.3 + 0.45 * Math.min(1, busy));
  }

  /** For what a search did not match. */
  dimmed(colour: number): number {
    return mixed(colour, this.background, 0.22);
  }
}
