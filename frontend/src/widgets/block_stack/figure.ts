import type { AllocationGroup } from "../../api/types.gen";
import type { Table } from "../../model/table";
import type { Viewport } from "../../render/viewport";
import { figureOf } from "../export/figure";
import type { Figure } from "../export/source";
import { groupLabel, tileColours } from "./paint/colours";
import {
  GUTTER,
  paintAxes,
  paintLines,
  totalHeight,
  type BlockScene,
} from "./paint/paint";
import type { BlockPicture } from "./picture";
import type { BlockTile } from "./tile";

/** `cellsUrl`: data: URL of a PNG. */
export function blockFigure(
  title: string,
  scene: BlockScene,
  finest: BlockTile,
  cellsUrl: string,
): Figure {
  const { size, of } = scene;
  const { colours } = tileColours(finest, of);
  const { left, top, right } = GUTTER;
  return figureOf({
    title,
    theme: of.theme,
    axisName: of.axis.name,
    widthPx: left + size.widthPx + right,
    heightPx: totalHeight(size, of.marks),
    paint: (pen) => {
      paintAxes(pen, scene);
      pen.image(cellsUrl, left, top, size.widthPx, size.heightPx);
      paintLines(pen, scene);
    },
    legend: finest.answer.groups.map((group, i) => ({
      label: groupLabel(group).slice(0, 28),
      colour: colours[i] ?? "transparent",
    })),
  });
}

/** Slots of the blocks in view, the largest first. */
export function seenSlots(tile: BlockTile, view: Viewport): readonly number[] {
  const { first, last, edges, slot, size } = tile.runs;
  const seen = new Set<number>();
  slot.forEach((block, run) => {
    const begin = edges[first[run] ?? 0] ?? 0;
    const end = edges[(last[run] ?? 0) + 1] ?? 0;
    if (end > view.x0 && begin < view.x1) seen.add(block);
  });
  return [...seen].sort((a, b) => (size[b] ?? 0) - (size[a] ?? 0) || a - b);
}

/** Without blocks too thin to draw. */
export function blockTable(
  tile: BlockTile,
  view: Viewport,
  { stacks, matches }: Pick<BlockPicture, "stacks" | "matches">,
): Table {
  const { lives, groups, bands } = tile.answer;
  const slots = seenSlots(tile, view).filter((slot) => matches?.(tile, slot) ?? true);
  const numbers = (name: string, values: ArrayLike<number>) => ({
    name,
    values: Float64Array.from(slots, (slot) => values[slot] ?? NaN),
  });
  const named = (
    name: string,
    of: ArrayLike<number>,
    among: readonly AllocationGroup[],
  ) => {
    const labels = among.map(groupLabel);
    return { name, values: slots.map((slot) => labels[of[slot] ?? -1] ?? "") };
  };
  const ofStack = (name: string, textOf: (stack: number) => string | undefined) => ({
    name,
    values: slots.map((slot) => textOf(lives.stack[slot] ?? -1) ?? ""),
  });
  return {
    numRows: slots.length,
    columns: [
      numbers("life", lives.life),
      numbers("size_bytes", lives.size),
      numbers("born_event", lives.born),
      numbers("freed_event", lives.freed),
      numbers("gone_event", lives.gone),
      named("group", lives.group, groups),
      named("stacked_in", lives.band, bands),
      ofStack("module", (stack) => stacks?.module(stack)),
      ofStack("allocated_at", (stack) => stacks?.stackLabel(stack)),
      numbers("stack", lives.stack),
    ],
  };
}
