/** The picture of blocks as a file, and what is in sight as a table. */

import type { AllocationGroup } from "../../api/types.gen";
import type { CallStacks } from "../../model/stacks/call_stacks";
import type { Table } from "../../model/table";
import type { Viewport } from "../../render/viewport";
import { figureOf } from "../export/figure";
import type { Figure } from "../export/source";
import { groupLabel } from "./colours";
import { GUTTER, paintAxes, paintLines, totalHeight, type BlockScene } from "./paint";
import type { BlockTile } from "./tile";

export interface BlockFigure {
  readonly title: string;
  readonly scene: BlockScene;
  readonly groups: readonly AllocationGroup[];
  readonly colours: readonly string[];
  /** The blocks, as a data: URL of a PNG. */
  readonly cellsUrl: string;
}

export function blockFigure(input: BlockFigure): Figure {
  const { title, scene, groups, colours, cellsUrl } = input;
  const { size, marks, theme, axis } = scene;
  const { left, top } = GUTTER;
  return figureOf({
    ...{ title, theme },
    axisName: axis.name,
    widthPx: left + size.widthPx + GUTTER.right,
    heightPx: totalHeight(size, marks),
    paint: (pen) => {
      paintAxes(pen, scene);
      pen.image(cellsUrl, left, top, size.widthPx, size.heightPx);
      paintLines(pen, scene);
    },
    legend: groups.map((group, i) => ({
      label: groupLabel(group).slice(0, 28),
      colour: colours[i] ?? "transparent",
    })),
  });
}

/** Rows of the blocks that have a part in sight, the largest first. */
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

function named(group: AllocationGroup | undefined): string {
  return group === undefined ? "" : groupLabel(group);
}

/** The blocks drawn in sight; those too thin to be drawn are not among them. */
export function blockTable(
  tile: BlockTile,
  view: Viewport,
  stacks: CallStacks | null,
  found: ((slot: number) => boolean) | null,
): Table {
  const { lives, groups, bands } = tile.answer;
  const all = seenSlots(tile, view);
  const slots = found === null ? all : all.filter(found);
  const pick = (values: ArrayLike<number>): Float64Array =>
    Float64Array.from(slots, (slot) => values[slot] ?? NaN);
  const words = (text: (slot: number) => string): readonly string[] => slots.map(text);
  const stackOf = (slot: number): number => lives.stack[slot] ?? -1;
  return {
    numRows: slots.length,
    columns: [
      { name: "life", values: pick(lives.life) },
      { name: "size_bytes", values: pick(lives.size) },
      { name: "born_event", values: pick(lives.born) },
      { name: "freed_event", values: pick(lives.freed) },
      { name: "gone_event", values: pick(lives.gone) },
      {
        name: "group",
        values: words((slot) => named(groups[lives.group[slot] ?? -1])),
      },
      {
        name: "stacked_in",
        values: words((slot) => named(bands[lives.band[slot] ?? -1])),
      },
      { name: "module", values: words((slot) => stacks?.module(stackOf(slot)) ?? "") },
      {
        name: "allocated_at",
        values: words((slot) => stacks?.stackLabel(stackOf(slot)) ?? ""),
      },
      { name: "stack", values: pick(lives.stack) },
    ],
  };
}
