/** Stepping the cursor by keys: from event to event, and from block to block. */

import type { BlockAxis } from "./axis";
import type { BlockController } from "./controller";
import type { BlockHover } from "./inputs";

/** By events where each has a column of its own, else by columns. */
export function stepEvents(
  controller: BlockController,
  axis: BlockAxis,
  by: number,
): BlockHover | null {
  const { tile, view } = controller;
  if (tile === null || tile.numColumns === 0) return null;
  const from = controller.hovered.peek();
  const x = from?.x ?? (view.x0 + view.x1) / 2;
  const column = tile.columnAt(Math.min(Math.max(x, tile.low), tile.high));
  const next = Math.min(Math.max(column + by, 0), tile.numColumns - 1);
  const at = tile.middleOf(next);
  if (at < view.x0 || at > view.x1) {
    controller.reveal(tile.answer.columns.moment[next] ?? -1);
  }
  const y = from === null ? null : middleY(from);
  return controller.moveTo(Math.min(Math.max(at, axis.low), axis.high), y);
}

/** World y of the middle of the block under the cursor; null where there is none. */
function middleY({ tile, column, block }: BlockHover): number | null {
  if (block === null) return null;
  const run = tile.runsAt(column).find((one) => tile.runs.slot[one] === block.slot);
  return run === undefined ? null : tile.middleOfRun(run, column);
}

/** To the block above (by > 0) or below, in the column of the cursor. */
export function stepBlocks(
  controller: BlockController,
  axis: BlockAxis,
  by: number,
): BlockHover | null {
  const from = controller.hovered.peek() ?? stepEvents(controller, axis, 0);
  if (from === null) return null;
  const { tile, column, block } = from;
  const runs = tile.runsAt(column);
  const at =
    block === null ? -1 : runs.findIndex((run) => tile.runs.slot[run] === block.slot);
  const start = at >= 0 ? at : by > 0 ? -1 : runs.length;
  const run = runs[Math.min(Math.max(start + by, 0), runs.length - 1)];
  if (run === undefined) return from;
  return controller.moveTo(from.x, tile.middleOfRun(run, column));
}
