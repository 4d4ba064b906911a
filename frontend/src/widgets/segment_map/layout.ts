/**
 * Where segments and their blocks lie on the map: a row for each segment, its bytes from
 * left to right, going on in the next line where it is longer than one. Pure.
 */

import type { SegmentsResponse } from "../../api/types.gen";

/** CSS px of a line and of its bar; a row has room for two lines of words. */
export const LINE_PX = 24;
export const BAR_PX = 22;
const LEAST_ROW_PX = 34;
const ROW_GAP_PX = 12;
const ABOVE_PX = 3;

const MIB = 2 ** 20;
/** What one line stands for at least: the allocator's smallest segment. */
const LEAST_LINE_BYTES = 2 * MIB;
/** Of many segments the long ones may need this many lines more, all together. */
const MORE_LINES = 24;
const FEW_LINES = 32;
/** So many equal full segments are one line. */
const LEAST_FOLDED = 3;
const MOST_LINES = 20_000;

/** Bytes of one line: alike for all, so that lengths compare, or each segment's own. */
export type SegmentScale = "auto" | "fit" | number;

export interface SegmentLayout {
  /** By row: bytes that one of its lines stands for. */
  readonly lineBytes: Float64Array;
  readonly numLines: Int32Array;
  /** CSS px; one more than rows. */
  readonly top: Float64Array;
  /** By row: segments that its line stands for; 0: the line is an earlier row's. */
  readonly numFolded: Int32Array;
  /** By row: how many equal full segments begin there; 1 of any other. */
  readonly runs: Int32Array;
  /** Bytes of the line that earlier rows take. */
  readonly offset: Float64Array;
  /** The same for all rows; null where each segment fills its line. */
  readonly equalBytes: number | null;
}

type Rows = Pick<
  SegmentsResponse["segments"],
  | "address"
  | "totalBytes"
  | "freeBytes"
  | "pool"
  | "stream"
  | "isLarge"
  | "isExpandable"
>;

function equalRuns(rows: Rows): Int32Array {
  const { totalBytes, freeBytes, pool, stream, isLarge, isExpandable } = rows;
  const alike = [totalBytes, freeBytes, pool, stream, isLarge, isExpandable];
  const runs = new Int32Array(totalBytes.length).fill(1);
  for (let row = 0; row < runs.length;) {
    let end = row + 1;
    while (
      freeBytes[row] === 0 &&
      end < runs.length &&
      alike.every((column) => column[end] === column[row])
    )
      end += 1;
    if (end - row >= LEAST_FOLDED) runs[row] = end - row;
    row = end;
  }
  return runs;
}

function linesAt(totalBytes: readonly number[], lineBytes: number): number {
  let lines = 0;
  for (const size of totalBytes) lines += Math.max(1, Math.ceil(size / lineBytes));
  return lines;
}

/** The least bytes a line may stand for, so that the map is not endlessly long. */
export function leastLineBytes(totalBytes: ArrayLike<number>): number {
  const sizes = Array.from(totalBytes);
  let bytes = LEAST_LINE_BYTES / 16;
  while (linesAt(sizes, bytes) > MOST_LINES + sizes.length) bytes *= 2;
  return bytes;
}

/** Bytes of a line at which most segments can be seen into, and few lines are needed. */
function chosenLineBytes(sizes: readonly number[]): number {
  const most = Math.max(FEW_LINES, sizes.length + MORE_LINES);
  let bytes = LEAST_LINE_BYTES;
  while (linesAt(sizes, bytes) > most) bytes *= 2;
  return bytes;
}

/** `unfolded`: addresses of the first segments of runs that are shown one by one. */
export function segmentLayout(
  rows: Rows,
  scale: SegmentScale,
  unfolded: ReadonlySet<number> = new Set(),
): SegmentLayout {
  const { totalBytes, address } = rows;
  const num = totalBytes.length;
  const runs = equalRuns(rows);
  const numFolded = new Int32Array(num);
  for (let row = 0; row < num; row += runs[row] ?? 1) {
    if (unfolded.has(address[row] ?? -1))
      numFolded.fill(1, row, row + (runs[row] ?? 1));
    else numFolded[row] = runs[row] ?? 1;
  }
  const single = [...totalBytes].filter((_, row) => numFolded[row] === 1);
  const equalBytes =
    scale === "fit"
      ? null
      : scale === "auto"
        ? chosenLineBytes(single)
        : Math.max(scale, leastLineBytes(totalBytes));
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
  return { lineBytes, numLines, top, numFolded, runs, offset, equalBytes };
}

/** The row at a height; -1 above the first or below the last. */
export function rowAt({ top }: SegmentLayout, y: number): number {
  let low = 0;
  let high = top.length - 2;
  if (high < 0 || !(y >= 0) || y >= (top[high + 1] ?? 0)) return -1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((top[middle] ?? 0) <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Rows any part of which lies between two heights: from the first up to the second. */
export function rowsBetween(
  layout: SegmentLayout,
  y0: number,
  y1: number,
): readonly [number, number] {
  const num = layout.top.length - 1;
  if (num <= 0) return [0, 0];
  let first = y0 <= 0 ? 0 : rowAt(layout, y0);
  while (first > 0 && layout.numFolded[first] === 0) first -= 1;
  const last = rowAt(layout, Math.max(0, y1));
  return [first < 0 ? num : first, last < 0 ? num : last + 1];
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

/** Rows of blocks of a segment: from the first up to, without, the second. */
export function blocksOf(
  { segments }: Pick<SegmentsResponse, "segments">,
  row: number,
): readonly [number, number] {
  const first = segments.firstBlock[row] ?? 0;
  return [first, first + (segments.numBlocks[row] ?? 0)];
}

/** The row of the segment that a block lies in; -1: there is no such block. */
export function rowOfBlock(
  { segments }: Pick<SegmentsResponse, "segments">,
  block: number,
): number {
  const { firstBlock, numBlocks } = segments;
  let low = 0;
  let high = firstBlock.length - 1;
  if (high < 0 || block < 0) return -1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((firstBlock[middle] ?? 0) <= block) low = middle;
    else high = middle - 1;
  }
  const inside = block < (firstBlock[low] ?? 0) + (numBlocks[low] ?? 0);
  return inside ? low : -1;
}
