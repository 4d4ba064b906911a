/** A picture made of tiles: what its loader is told, and its files. */

import type { RunSummary } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import { figureTitle, originOf } from "../../../model/words/origin";
import type { Viewport } from "../../../render/viewport";
import { groupColours } from "../../../widgets/block_stack/colours";
import type { BlockController } from "../../../widgets/block_stack/controller";
import { blockFigure, blockTable } from "../../../widgets/block_stack/figure";
import type { BlockTile } from "../../../widgets/block_stack/tile";
import type { ExportSource } from "../../../widgets/export/source";
import type { Tiles } from "./use_tiles";

const MOST_PIXEL_RATIO = 2;

/** Has the tiles loaded that a view needs. */
export function lookAt(
  { loader }: Tiles,
  { size, world }: BlockController,
  view: Viewport,
  settled: boolean,
): void {
  const ratio = Math.min(window.devicePixelRatio || 1, MOST_PIXEL_RATIO);
  const widthPx = Math.round(size.widthPx * ratio);
  const heightPx = Math.round(size.heightPx * ratio);
  loader.look({ view, world, size: { widthPx, heightPx } }, settled);
}

export interface PictureState {
  readonly run: RunSummary;
  readonly label: string;
  readonly tiles: readonly BlockTile[];
  readonly stacks: CallStacks | null;
  /** By block of a tile; null: nothing is searched for. */
  readonly found: ((tile: BlockTile, slot: number) => boolean) | null;
  readonly controller: BlockController | null;
  /** null: everything. */
  readonly seen: Viewport | null;
  readonly theme: Theme;
  /** Facts beside the columns in JSON. */
  readonly about: Readonly<Record<string, unknown>>;
}

const NOWHERE: Viewport = { x0: 0, x1: 1, y0: 1, y1: 0 };

/** The blocks in sight as a table, and the picture as a figure. */
export function blockSource(of: PictureState): ExportSource {
  const { run, label, tiles, stacks, found, controller, seen, theme } = of;
  const tile = tiles.at(-1);
  const origin = originOf(run);
  const view = seen ?? controller?.world ?? NOWHERE;
  return {
    origin,
    name: label,
    table: () =>
      tile === undefined
        ? { numRows: 0, columns: [] }
        : blockTable(
            tile,
            view,
            stacks,
            found === null ? null : (slot) => found(tile, slot),
          ),
    about: () => of.about,
    figure:
      controller === null || tile === undefined
        ? null
        : () =>
            blockFigure({
              title: figureTitle(label, origin),
              scene: controller.scene(),
              groups: tile.answer.groups,
              colours: groupColours(theme, tile.answer.groups, tile.colour),
              cellsUrl: controller.cells().toDataURL("image/png"),
            }),
  };
}
