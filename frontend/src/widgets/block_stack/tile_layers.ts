/** Tiles as layers of the raster, from the coarsest to the finest. */

import type { RunColours } from "../../render/runs";
import type { RasterSurface } from "../../render/surface";
import type { BlockTile } from "./tile";

export class TileLayers {
  readonly #surface: RasterSurface;
  #layers = new Map<string, BlockTile>();
  readonly #names = new WeakMap<BlockTile, string>();
  #numNamed = 0;

  constructor(surface: RasterSurface) {
    this.#surface = surface;
  }

  /** The tile that a pick is of; undefined: it is of an older drawing. */
  of(layer: string): BlockTile | undefined {
    return this.#layers.get(layer);
  }

  set(tiles: readonly BlockTile[]): void {
    const next = new Map(tiles.map((tile) => [this.#nameOf(tile), tile]));
    for (const name of this.#layers.keys()) {
      if (!next.has(name)) this.#surface.setLayer(name, 0, null);
    }
    let order = 0;
    for (const [name, tile] of next) {
      order += 1;
      if (this.#layers.has(name)) continue;
      this.#surface.setLayer(name, order, { kind: "runs", runs: tile.runs });
    }
    this.#layers = next;
  }

  /** Draws anew, each tile in its colours; one without any is not drawn. */
  colour(colours: ReadonlyMap<BlockTile, RunColours>): void {
    const runs = new Map<string, RunColours>();
    for (const [name, tile] of this.#layers) {
      const own = colours.get(tile);
      if (own !== undefined) runs.set(name, own);
    }
    this.#surface.setColours({ background: 0, cells: new Map(), runs, accent: 0 });
    this.#surface.refresh();
  }

  /** A layer's name is its tile's alone: a pick of an older drawing finds nothing. */
  #nameOf(tile: BlockTile): string {
    let name = this.#names.get(tile);
    if (name === undefined) {
      this.#numNamed += 1;
      name = `tile${this.#numNamed}`;
      this.#names.set(tile, name);
    }
    return name;
  }
}
