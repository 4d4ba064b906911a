/** What the cursor's canvas shows: what is pointed at, else pinned, else lit. Pure. */

import type { RectPx, SizePx, Viewport } from "../../render/viewport";
import type { BlockHover, BlockInputs } from "./inputs";
import type { CursorScene } from "./paint_cursor";
import type { BlockTile } from "./tile";

export interface CursorView {
  readonly view: Viewport;
  readonly size: SizePx;
  /** The finest tile that shows the middle of the view. */
  readonly tile: BlockTile | null;
  readonly hover: BlockHover | null;
  /** The range that is being drawn, in px of the plot. */
  readonly box: RectPx | null;
}

export function cursorScene(
  {
    life,
    stack,
    scene,
    range,
    cursorText,
  }: Pick<BlockInputs, "life" | "stack" | "scene" | "range" | "cursorText">,
  { view, size, tile, hover, box }: CursorView,
): CursorScene {
  const pinned = tile === null || life === null ? -1 : tile.slotOf(life);
  const over = hover !== null && hover.tile === tile ? hover.block : null;
  const block = over ?? (tile !== null && pinned >= 0 ? tile.factsOf(pinned) : null);
  const lit = over?.stack ?? stack ?? block?.stack ?? null;
  const perX = size.widthPx / (view.x1 - view.x0);
  const chosen =
    range === null
      ? null
      : {
          x: (range.low - view.x0) * perX,
          y: 0,
          width: (range.high - range.low) * perX,
          height: size.heightPx,
        };
  return {
    view,
    size,
    theme: scene.theme,
    marks: scene.marks,
    tile,
    x: hover?.x ?? null,
    text: hover === null ? "" : cursorText(hover),
    slot: block?.slot ?? null,
    // Memory without a stack is no family.
    stack: lit !== null && lit >= 0 ? lit : null,
    range: box ?? chosen,
  };
}
