/**
 * Where segments and their blocks lie on the map: a row for each segment, its bytes from
 * left to right, going on in the next line where it is longer than one. Pure.
 */

import type { SegmentsResponse } from "../../../../api/types.gen";

/** CSS px of a line and of its bar; a row has room for two lines of words. */
export const LINE_PX = 24;
export const BAR_PX = 22;
const LEAST_ROW_PX = 34;
const ROW_GAP_PX = 12;
const ABOVE_PX = 3;

/** What one line stands for at least: the allocator's smallest segment. */
const LEAST_LINE_BYTES = 2 * 2 ** 20;
/** Of many segments the long ones may need this many lines more, all together. */
const MORE_LINES = 24;
const FEW_LINES = 32;
const MOST_LINES = 20_000;

/** Bytes of one line: alike for all, so that lengths compare, or each segment's own. */
export type SegmentScale = "auto" | "fit" | number;

/** The segments and blocks of a moment. */
export type Shown = Pick<SegmentsResponse, "segments" | "blocks">;

export interface SegmentLayout {
  /** By row: bytes that one of its lines stands for. */
  readonly lineBytes: Float64Array;
  readonly numLines: Int32Array;
  /** CSS px; one more than rows. */
  readonly top: Float64Array;
  /** By row: segments that its line stands for; 0: the line is an earlier row's. */
  readonly numFolded: Int32Array;
  /** Bytes of the line that earlier rows take. */
  readonly offset: Float64Array;
  /** The same for all rows; null where each segment fills its line. */
  readonly equalBytes: number | null;
}

/** Twice `bytes`, until all segments take no more lines than this. */
function coarser(sizes: readonly number[], bytes: number, most: number): number {
  const lines = sizes.reduce((sum, size) => sum + Math.ceil(size / bytes || 1), 0);
  return lines > most ? coarser(sizes, 2 * bytes, most) : bytes;
}

/** The least bytes a line may stand for, so that the map is not endlessly long. */
export function leastLineBytes(totalBytes: ArrayLike<number>): number {
  const sizes = Array.from(totalBytes);
  return coarser(sizes, LEAST_LINE_BYTES / 16, MOST_LINES + sizes.length);
}

/** `unfolded`: addresses of the first segments of runs that are shown one by one. */
export function segmentLayout(
  rows: Pick<SegmentsResponse["segments"], "address" | "totalBytes" | "numAlike">,
  scale: SegmentScale,
  unfolded: ReadonlySet<number> = new Set(),
): SegmentLayout {
  const { totalBytes, address, numAlike } = rows;
  const num = totalBytes.length;
  const numFolded = new Int32Array(num);
  for (let row = 0; row < num; row += numAlike[row] ?? 1) {
    const alike = numAlike[row] ?? 1;
    if (unfolded.has(address[row] ?? -1)) numFolded.fill(1, row, row + alike);
    else numFolded[row] = alike;
  }
  const single = [...totalBytes].filter((_, row) => numFolded[row] === 1);
  const few = Math.max(FEW_LINES, single.length + MORE_LINES);
  // Most segments can be seen into then, and few lines are needed.
  const chosen = scale === "auto" ? coarser(single, LEAST_LINE_BYTES, few) : scale;
  const equalBytes =
    chosen === "fit" ? null : Math.max(chosen, leastLineBytes(totalBytes));
  const lineBytes = new Float64Array(num);
  const numLines = new Int32Array(num);
  const offset = new Float64Array(num);
  const top = new Float64Array(num + 1);
  for (let row = 0; row < num;) {
    const size = totalBytes[row] ?? 0;
    const folded = numFolded[row] ?? 1;
    const bytes = folded === 1 && equalBytes !== null ? equalBytes : folded * size;
    const lines = folded === 1 ? Math.max(1, Math.ceil(size / Math.max(bytes, 1))) : 1;
    const next = (top[row] ?? 0) + Math.max(LEAST_ROW_PX, lines * LINE_PX + ROW_GAP_PX);
    for (let i = 0; i < folded; i += 1) {
      lineBytes[row + i] = Math.max(bytes, 1);
      numLines[row + i] = lines;
      offset[row + i] = i * size;
      top[row + i + 1] = i + 1 === folded ? next : (top[row] ?? 0);
    }
    row += folded;
  }
  return { lineBytes, numLines, top, numFolded, offset, equalBytes };
}

/** The last place of an ascending column whose value is not above one. */
function lastUpTo(
  values: ArrayLike<number>,
  value: number,
  from = 0,
  end = values.length,
) {
  let [low, high] = [from - 1, end - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((values[middle] ?? 0) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The row at a height; -1 above the first or below the last. */
export function rowAt({ top }: SegmentLayout, y: number): number {
  if (!(y >= 0) || y >= (top.at(-1) ?? 0)) return -1;
  return lastUpTo(top, y, 0, top.length - 1);
}

/** Rows any part of which lies between two heights: from the first up to the second. */
export function rowsBetween(
  layout: SegmentLayout,
  y0: number,
  y1: number,
): readonly [number, number] {
  const num = layout.numLines.length;
  let first = Math.max(0, lastUpTo(layout.top, y0, 0, num));
  while (first > 0 && layout.numFolded[first] === 0) first -= 1;
  return [first, lastUpTo(layout.top, Math.max(0, y1), 0, num) + 1];
}

/** A part of a block in one line: shares of the width, and heights. */
export interface Piece {
  readonly x0: number;
  readonly x1: number;
  readonly y0: number;
  readonly y1: number;
}

/** A part of a segment, line by line. */
export function pieces(
  layout: SegmentLayout,
  row: number,
  inSegment: number,
  size: number,
): readonly Piece[] {
  const bytes = layout.lineBytes[row] ?? 1;
  const offset = (layout.offset[row] ?? 0) + inSegment;
  const above = (layout.top[row] ?? 0) + ABOVE_PX;
  const end = offset + size;
  const found: Piece[] = [];
  const last = Math.max(Math.ceil(end / bytes) - 1, Math.floor(offset / bytes));
  for (let line = Math.floor(offset / bytes); line <= last; line += 1) {
    const begin = line * bytes;
    const y0 = above + line * LINE_PX;
    found.push({
      x0: Math.max(0, (offset - begin) / bytes),
      x1: Math.min(1, (end - begin) / bytes),
      y0,
      y1: y0 + BAR_PX,
    });
  }
  return found;
}

/** Where a block lies. */
export function blockPieces(
  { segments, blocks }: Shown,
  layout: SegmentLayout,
  block: number,
): readonly Piece[] {
  const row = rowOfBlock({ segments }, block);
  if (row < 0) return [];
  return pieces(layout, row, blocks.offset[block] ?? 0, blocks.size[block] ?? 0);
}

/** Rows of blocks of a segment: from the first up to, without, the second. */
export function blocksOf(
  { segments }: Pick<Shown, "segments">,
  row: number,
): readonly [number, number] {
  const first = segments.firstBlock[row] ?? 0;
  return [first, first + (segments.numBlocks[row] ?? 0)];
}

/** Those of them that have any of the bytes from one offset up to another. */
export function blocksWithin(
  { segments, blocks }: Shown,
  row: number,
  from: number,
  to: number,
): readonly [number, number] {
  const [first, end] = blocksOf({ segments }, row);
  const at = lastUpTo(blocks.offset, from, first, end);
  return [Math.max(first, at), lastUpTo(blocks.offset, to, first, end) + 1];
}

/** The row of the segment that a block lies in; -1: there is no such block. */
export function rowOfBlock(
  { segments }: Pick<Shown, "segments">,
  block: number,
): number {
  const row = block < 0 ? -1 : lastUpTo(segments.firstBlock, block);
  return row >= 0 && block < blocksOf({ segments }, row)[1] ? row : -1;
}

/** What lies at a place: a segment, and a block of it; -1: its blocks are not listed. */
export interface Hit {
  readonly row: number;
  readonly block: number;
}

/** `x`: a share of the width; `wide`: the share of a px. A live block is found first. */
export function hitAt(
  shown: Shown,
  layout: SegmentLayout,
  x: number,
  y: number,
  wide: number,
): Hit | null {
  const first = rowAt(layout, y);
  if (first < 0) return null;
  const line = Math.floor((y - (layout.top[first] ?? 0) - ABOVE_PX) / LINE_PX);
  const bytes = layout.lineBytes[first] ?? 1;
  let row = first;
  while (row > 0 && layout.numFolded[row] === 0) row -= 1;
  const within = line * bytes + x * bytes;
  const size = shown.segments.totalBytes[row] ?? 0;
  row += Math.min(Math.floor(within / size), (layout.numFolded[row] ?? 1) - 1);
  const at = within - (layout.offset[row] ?? 0);
  if (line < 0 || at < 0 || at >= size) return null;
  const [from, to] = blocksWithin(shown, row, at, at + wide * bytes);
  if (from >= to) return { row, block: -1 };
  const { state } = shown.blocks;
  for (let block = from; block < to; block += 1) {
    if ((state[block] ?? 0) > 0) return { row, block };
  }
  return { row, block: from };
}

/** The block before or after one; with `far` the first of the next segment. */
export function steppedBlock(
  shown: Shown,
  from: number,
  by: 1 | -1,
  far: boolean,
): number {
  const num = shown.blocks.state.length;
  if (num === 0) return -1;
  if (from < 0) return by > 0 ? 0 : num - 1;
  if (!far) return Math.min(Math.max(from + by, 0), num - 1);
  const numRows = shown.segments.address.length;
  for (let row = rowOfBlock(shown, from) + by; row >= 0 && row < numRows; row += by) {
    const [first, end] = blocksOf(shown, row);
    if (end > first) return first;
  }
  return from;
}
