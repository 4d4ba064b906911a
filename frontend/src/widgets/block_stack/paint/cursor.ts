import { tokens } from "../../../base/tokens";
import type { RectPx, SizePx, Viewport } from "../../../render/viewport";
import { xToPx } from "../../../render/viewport";
import { clipTo, paintPointer } from "../../plot/axes";
import { rectOf } from "./labels";
import { stripHeight, type BlockScene } from "./paint";
import type { BlockHover, BlockPicture } from "../picture";
import type { BlockTile } from "../tile";

/** More lit rectangles are unreadable. */
const MOST_LIT = 3000;

interface Pointer {
  readonly hover: BlockHover | null;
  /** Px of the plot. */
  readonly box: RectPx | null;
}

/** `tile`: the finest at the middle of the view. */
export function paintCursor(
  context: CanvasRenderingContext2D,
  scene: BlockScene,
  { hover, box }: Pointer,
): void {
  const { size, tile, of, left, top } = scene;
  if (tile !== null) {
    clipTo(context, left, top, size.widthPx, size.heightPx);
    context.translate(left, top);
    paintLit(context, scene, tile, litBy(of, tile, hover));
    context.restore();
  }
  paintPointer(context, of.theme, scene, {
    x: hover?.x ?? NaN,
    row: NaN,
    onCells: false,
    box: box ?? chosenRange(scene),
    stripPx: stripHeight(of.marks) + 4,
  });
}

interface Lit {
  /** Outlined: the block under the pointer, else the pinned one; -1: none. */
  readonly slot: number;
  /** All its blocks are lit; -1: none, as for memory without a stack. */
  readonly stack: number;
}

export function litBy(
  { life, stack }: Pick<BlockPicture, "life" | "stack">,
  tile: BlockTile,
  hover: BlockHover | null,
): Lit {
  const over = hover?.tile === tile ? hover.block : null;
  const slot = over?.slot ?? (life === null ? -1 : tile.slotOf(life));
  const own = slot < 0 ? -1 : tile.factsOf(slot).stack;
  return { slot, stack: over?.stack ?? stack ?? own };
}

/** The visible part, in px of the plot. */
export function chosenRange({
  of: { range },
  view,
  size,
}: Pick<BlockScene, "of" | "view" | "size">): RectPx | null {
  if (range === null) return null;
  const [left, right] = [range.low, range.high].map((x) =>
    Math.min(Math.max(xToPx(view, size.widthPx, x), 0), size.widthPx),
  ) as [number, number];
  if (right <= left) return null;
  return { x: left, y: 0, width: right - left, height: size.heightPx };
}

/** The visible level parts of a block, in px. */
function eachRect(
  tile: BlockTile,
  view: Viewport,
  size: SizePx,
  slot: number,
  take: (rect: RectPx) => void,
): void {
  const { edges, first, last } = tile.runs;
  const [begin, end] = tile.runsOf(slot);
  for (let run = begin; run < end; run += 1) {
    // Most blocks of a stack are out of view, and have many parts.
    if ((edges[(last[run] ?? 0) + 1] ?? 0) <= view.x0) continue;
    if ((edges[first[run] ?? 0] ?? 0) >= view.x1) continue;
    tile.eachPart(run, (from, to) => {
      if ((edges[to] ?? 0) <= view.x0 || (edges[from] ?? 0) >= view.x1) return;
      const rect = rectOf(tile, view, size, run, from, to);
      if (rect.width > 0 && rect.height > 0) take(rect);
    });
  }
}

export function blockRects(
  tile: BlockTile,
  view: Viewport,
  size: SizePx,
  slot: number,
): readonly RectPx[] {
  const rects: RectPx[] = [];
  eachRect(tile, view, size, slot, (rect) => rects.push(rect));
  return rects;
}

function paintLit(
  context: CanvasRenderingContext2D,
  { view, size, of }: BlockScene,
  tile: BlockTile,
  { slot, stack }: Lit,
): void {
  const { text, bg } = tokens(of.theme);
  if (stack >= 0) {
    context.beginPath();
    let lit = 0;
    // No array: it would be garbage at every frame of a gesture.
    const add = ({ x, y, width, height }: RectPx): void => {
      context.rect(x, y, Math.max(width, 1), Math.max(height, 1));
      lit += 1;
    };
    for (const other of tile.slotsOf(stack)) {
      if (other !== slot) eachRect(tile, view, size, other, add);
      if (lit > MOST_LIT) break;
    }
    context.fillStyle = text;
    context.globalAlpha = 0.32;
    context.fill();
    context.globalAlpha = 1;
  }
  if (slot < 0) return;
  // Around all parts, without lines between touching ones.
  const rects = blockRects(tile, view, size, slot);
  for (const [colour, px] of [
    [bg, 3],
    [text, 2],
  ] as const) {
    context.fillStyle = colour;
    for (const { x, y, width, height } of rects) {
      context.fillRect(x - px, y - px, width + 2 * px, height + 2 * px);
    }
  }
  for (const { x, y, width, height } of rects) context.clearRect(x, y, width, height);
}
