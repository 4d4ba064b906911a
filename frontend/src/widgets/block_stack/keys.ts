import { formatBytes, formatInteger } from "../../base/bytes";
import { momentText } from "./axis";
import { groupLabel } from "./paint/colours";
import type { BlockController } from "./controller";
import type { BlockHover, BlockPicture } from "./picture";
import type { BlockFacts } from "./tile";

/** By events where each has its own column, else by columns. */
export function stepEvents(controller: BlockController, by: number): BlockHover | null {
  const { tile, view, axis } = controller;
  if (tile === null || tile.numColumns === 0) return null;
  const from = controller.hovered.peek();
  const x = from?.x ?? (view.x0 + view.x1) / 2;
  const column = tile.columnAt(Math.min(Math.max(x, tile.low), tile.high));
  const next = Math.min(Math.max(column + by, 0), tile.numColumns - 1);
  const at = tile.middleOf(next);
  if (at < view.x0 || at > view.x1) {
    controller.reveal(tile.answer.columns.moment[next] ?? -1);
  }
  const run = from === null ? -1 : runOf(from);
  const y = from === null || run < 0 ? null : from.tile.middleOfRun(run, from.column);
  return controller.moveTo(Math.min(Math.max(at, axis.low), axis.high), y);
}

/** by > 0: up. */
function stepBlocks(controller: BlockController, by: number): BlockHover | null {
  const from = controller.hovered.peek() ?? stepEvents(controller, 0);
  if (from === null) return null;
  const { tile, column } = from;
  const runs = tile.runsAt(column);
  const at = runs.indexOf(runOf(from));
  const start = at >= 0 ? at : by > 0 ? -1 : runs.length;
  const run = runs[Math.min(Math.max(start + by, 0), runs.length - 1)];
  if (run === undefined) return from;
  return controller.moveTo(from.x, tile.middleOfRun(run, column));
}

/** -1: none. */
function runOf({ tile, column, block }: BlockHover): number {
  return tile.runsAt(column).find((run) => tile.runs.slot[run] === block?.slot) ?? -1;
}

export const KEYS: Readonly<
  Record<string, (of: BlockController, by: number) => BlockHover | null>
> = {
  ArrowRight: stepEvents,
  ArrowLeft: (of, by) => stepEvents(of, -by),
  ArrowUp: stepBlocks,
  ArrowDown: (of, by) => stepBlocks(of, -by),
};

export function spokenOf(
  { stacks, byteUnit, device }: BlockPicture,
  at: BlockHover,
): string {
  const { tile, column, block } = at;
  const total = tile.answer.columns.active[column] ?? NaN;
  const words = [momentText(at.moment), `${formatBytes(total, byteUnit)} live`];
  if (block !== null) {
    words.push(`block of ${formatBytes(block.size, byteUnit)}`);
    const group = tile.answer.groups[block.group];
    if (group !== undefined) words.push(groupLabel(group));
    if (stacks !== null) words.push(stacks.stackLabel(block.stack));
    words.push(`freed: ${freedText(block, device.numEvents)}`);
  }
  return words.join(", ");
}

/** A free is requested first; it completes when all streams have caught up. */
export function freedText(
  { born, freed, gone }: Pick<BlockFacts, "born" | "freed" | "gone">,
  numEvents: number,
): string {
  if (gone >= numEvents) {
    return freed >= numEvents
      ? "still live at the end"
      : "free requested, not completed by the end";
  }
  const lasted = born < 0 ? "" : `, after ${formatInteger(gone - born)} events`;
  const waited =
    freed >= 0 && freed < gone ? ` (requested at ${formatInteger(freed)})` : "";
  return `${momentText(gone)}${lasted}${waited}`;
}
