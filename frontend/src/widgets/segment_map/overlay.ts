/** What lies over the blocks: outlines of segments, of what is chosen, and who pins. */

import type { SegmentsResponse } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";
import { FONT, type Pen } from "../export/pen";
import { fitting } from "../plot/text";
import { STATE } from "./fills";
import {
  blocksOf,
  pieces,
  rowOfBlock,
  rowsBetween,
  type SegmentLayout,
} from "./layout";

/** A note is written where a free block has this much room for it. */
const NOTE_LEAST_PX = 120;
/** Of a segment that is freer than this it is said who pins it. */
const NOTE_LEAST_FREE = 0.5;

export interface Overlay {
  readonly answer: SegmentsResponse;
  readonly layout: SegmentLayout;
  readonly theme: Theme;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly scrollPx: number;
  /** Rows of blocks; -1: none. */
  readonly hovered: number;
  readonly selected: number;
  /** All blocks of it are outlined; null: none. */
  readonly stack: number | null;
  /** What pins a segment open, by its address. */
  readonly pinned: ReadonlyMap<number, string>;
}

/** Live blocks between free ones that keep a request from being served; all of them. */
export function obstacleBlocks({
  request,
  segments,
  blocks,
}: Pick<SegmentsResponse, "request" | "segments" | "blocks">): readonly number[] {
  const obstacle = request?.obstacle ?? null;
  if (obstacle === null) return [];
  const row = segments.address.indexOf(obstacle.segmentAddress);
  if (row < 0) return [];
  const [first, end] = blocksOf({ segments }, row);
  return Array.from({ length: end - first }, (_, i) => first + i).filter((block) => {
    const inside = (blocks.offset[block] ?? 0) - obstacle.offset;
    return blocks.state[block] !== STATE.free && inside >= 0 && inside < obstacle.size;
  });
}

export function paintOverlay(pen: Pen, of: Overlay): void {
  const { answer, layout, theme, heightPx, scrollPx, stack } = of;
  const { bad, border, link, text } = tokens(theme);
  const [first, end] = rowsBetween(layout, scrollPx, scrollPx + heightPx);
  const { segments, blocks } = answer;
  pen.font = FONT;
  pen.textBaseline = "middle";
  for (let row = first; row < end; row += 1) {
    outline(pen, of, row, 0, segments.totalBytes[row] ?? 0, border, 1);
    note(pen, of, row);
    if (stack === null || stack < 0) continue;
    const [from, to] = blocksOf(answer, row);
    for (let block = from; block < to; block += 1) {
      if (blocks.stack[block] !== stack) continue;
      const [offset, size] = [blocks.offset[block] ?? 0, blocks.size[block] ?? 0];
      outline(pen, of, row, offset, size, text, 1);
    }
  }
  outlineBlock(pen, of, of.hovered, text, 1.5);
  outlineBlock(pen, of, of.selected, link, 2.5);
  for (const block of obstacleBlocks(answer)) outlineBlock(pen, of, block, bad, 3);
}

function outlineBlock(
  pen: Pen,
  of: Overlay,
  block: number,
  colour: string,
  lineWidth: number,
): void {
  const row = rowOfBlock(of.answer, block);
  if (row < 0) return;
  const { blocks } = of.answer;
  const [offset, size] = [blocks.offset[block] ?? 0, blocks.size[block] ?? 0];
  outline(pen, of, row, offset, size, colour, lineWidth);
}

function outline(
  pen: Pen,
  { layout, widthPx, scrollPx }: Overlay,
  row: number,
  offset: number,
  size: number,
  colour: string,
  lineWidth: number,
): void {
  pen.strokeStyle = colour;
  pen.lineWidth = lineWidth;
  for (const { x0, x1, y0, y1 } of pieces(layout, row, offset, size)) {
    const left = Math.min(x0 * widthPx, widthPx - 1);
    const wide = Math.max((x1 - x0) * widthPx, 1);
    const half = lineWidth / 2;
    pen.strokeRect(
      left + half,
      y0 - scrollPx + half,
      Math.max(0.5, wide - lineWidth),
      y1 - y0 - lineWidth,
    );
  }
}

/** Who keeps a mostly free segment, written into its largest free block. */
function note(pen: Pen, of: Overlay, row: number): void {
  const { answer, layout, widthPx, scrollPx, theme, pinned } = of;
  const { segments, blocks } = answer;
  const words = pinned.get(segments.address[row] ?? -1);
  const free = segments.freeBytes[row] ?? 0;
  if (layout.numFolded[row] !== 1) return;
  if (words === undefined || free < NOTE_LEAST_FREE * (segments.totalBytes[row] ?? 0)) {
    return;
  }
  const [first, end] = blocksOf(answer, row);
  let widest = -1;
  for (let block = first; block < end; block += 1) {
    if (blocks.state[block] !== 0) continue;
    if ((blocks.size[block] ?? 0) > (blocks.size[widest] ?? 0)) widest = block;
  }
  const room = pieces(
    layout,
    row,
    blocks.offset[widest] ?? 0,
    blocks.size[widest] ?? 0,
  ).reduce<{ x0: number; x1: number; y0: number; y1: number } | null>(
    (best, one) => (best === null || one.x1 - one.x0 > best.x1 - best.x0 ? one : best),
    null,
  );
  if (room === null || (room.x1 - room.x0) * widthPx < NOTE_LEAST_PX) return;
  const most = (room.x1 - room.x0) * widthPx - 20;
  const text = fitting(words, most, (one) => pen.measureText(one).width);
  const { bg, text: ink } = tokens(theme);
  const middle = (room.y0 + room.y1) / 2 - scrollPx;
  const left = room.x0 * widthPx + 8;
  pen.fillStyle = bg;
  pen.globalAlpha = 0.86;
  pen.fillRect(left - 3, middle - 8, pen.measureText(text).width + 6, 16);
  pen.globalAlpha = 1;
  pen.fillStyle = ink;
  pen.fillText(text, left, middle + 0.5);
}
