/**
 * Positions on the map in CSS px: a row per segment, its bytes from left to right,
 * wrapped into further lines.
 */

import type { SegmentsResponse } from "../../../../api/types.gen";
import type { PointPx } from "../../../../render/gestures";
import type { RectPx } from "../../../../render/viewport";
import { upperBound } from "../../../../model/lines/polyline";

/** Width of the labels left of the blocks. */
export const HEAD_PX = 216;
const RIGHT_PX = 12;
/** A line and its bar; a row has room for two lines of text. */
export const LINE_PX = 24;
export const BAR_PX = 22;
const LEAST_ROW_PX = 34;
const ROW_GAP_PX = 12;
const ABOVE_PX = 3;

/** Least bytes per line: the allocator's smallest segment. */
const LEAST_LINE_BYTES = 2 * 2 ** 20;
/** Lines that long segments may add, all together. */
const MORE_LINES = 24;
const FEW_LINES = 32;
const MOST_LINES = 20_000;

/** Bytes per line: equal, so that lengths compare, or fitted to segments. */
export type SegmentScale = "auto" | "fit" | number;

/** The segments and blocks of a moment. */
export type MapRows = Pick<SegmentsResponse, "segments" | "blocks">;

export interface SegmentLayout {
  readonly barsPx: number;
  readonly lineBytes: Float64Array;
  /** One more than rows. */
  readonly top: Float64Array;
  /** By row: segments folded into its line; 0: it shares an earlier row's line. */
  readonly numFolded: Int32Array;
  /** Bytes of the line that earlier rows take. */
  readonly offset: Float64Array;
  /** Bytes per line where equal in all rows; null: each segment fills its line. */
  readonly equalBytes: number | null;
}

/** Doubles `bytes` until all segments take at most `most` lines. */
function coarser(sizes: readonly number[], bytes: number, most: number): number {
  const lines = sizes.reduce((sum, size) => sum + Math.ceil(size / bytes || 1), 0);
  return lines > most ? coarser(sizes, 2 * bytes, most) : bytes;
}

/** Lower limit of bytes per line, which bounds the map's height. */
export function leastLineBytes(totalBytes: ArrayLike<number>): number {
  const sizes = Array.from(totalBytes);
  return coarser(sizes, LEAST_LINE_BYTES / 16, MOST_LINES + sizes.length);
}

/** `unfolded`: addresses of the first segments of runs that are shown one by one. */
export function segmentLayout(
  rows: Pick<SegmentsResponse["segments"], "address" | "totalBytes" | "numAlike">,
  scale: SegmentScale,
  widthPx: number,
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
  const chosen = scale === "auto" ? coarser(single, LEAST_LINE_BYTES, few) : scale;
  const equalBytes =
    chosen === "fit" ? null : Math.max(chosen, leastLineBytes(totalBytes));
  const lineBytes = new Float64Array(num);
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
      offset[row + i] = i * size;
      top[row + i + 1] = i + 1 === folded ? next : (top[row] ?? 0);
    }
    row += folded;
  }
  const barsPx = Math.max(1, widthPx - HEAD_PX - RIGHT_PX);
  return { barsPx, lineBytes, top, numFolded, offset, equalBytes };
}

/** The first row of the line at a height; -1: none. */
function rowAt({ top, numFolded }: SegmentLayout, y: number): number {
  if (!(y >= 0) || y >= (top.at(-1) ?? 0)) return -1;
  let row = upperBound(top, y) - 1;
  while (row > 0 && numFolded[row] === 0) row -= 1;
  return row;
}

/** Rows that touch the heights; the second is exclusive. */
export function rowsBetween(
  layout: SegmentLayout,
  y0: number,
  y1: number,
): readonly [number, number] {
  const num = layout.numFolded.length;
  return [
    Math.max(0, rowAt(layout, Math.max(0, y0))),
    Math.min(upperBound(layout.top, Math.max(0, y1)), num),
  ];
}

export function pieces(
  layout: SegmentLayout,
  row: number,
  inSegment: number,
  size: number,
): readonly RectPx[] {
  const { barsPx } = layout;
  const bytes = layout.lineBytes[row] ?? 1;
  const above = (layout.top[row] ?? 0) + ABOVE_PX;
  const begin = (layout.offset[row] ?? 0) + inSegment;
  const end = begin + size;
  const first = Math.floor(begin / bytes);
  const last = Math.max(Math.ceil(end / bytes) - 1, first);
  return Array.from({ length: last - first + 1 }, (_, i) => {
    const line = first + i;
    const px = (offset: number): number =>
      Math.round(Math.min(Math.max(offset / bytes - line, 0), 1) * barsPx);
    // Whole px, so that blocks meet; at least one, so that nothing thin vanishes.
    const left = Math.min(px(begin), Math.floor(barsPx) - 1);
    const width = Math.max(1, px(end) - left);
    return { x: HEAD_PX + left, y: above + line * LINE_PX, width, height: BAR_PX };
  });
}

export function blockPieces(
  { segments, blocks }: MapRows,
  layout: SegmentLayout,
  block: number,
): readonly RectPx[] {
  const row = rowOfBlock({ segments }, block);
  if (row < 0) return [];
  return pieces(layout, row, blocks.offset[block] ?? 0, blocks.size[block] ?? 0);
}

/** Rows of blocks of a segment; the second is exclusive. */
export function blocksOf(
  { segments }: Pick<MapRows, "segments">,
  row: number,
): readonly [number, number] {
  const first = segments.firstBlock[row] ?? 0;
  return [first, first + (segments.numBlocks[row] ?? 0)];
}

export function blocksWithin(
  { segments, blocks }: MapRows,
  row: number,
  from: number,
  to: number,
): readonly [number, number] {
  const [first, end] = blocksOf({ segments }, row);
  const last = upperBound(blocks.offset, from, first, end) - 1;
  return [Math.max(first, last), upperBound(blocks.offset, to, first, end)];
}

/** -1: there is no such block. */
export function rowOfBlock(
  { segments }: Pick<MapRows, "segments">,
  block: number,
): number {
  const row = block < 0 ? -1 : upperBound(segments.firstBlock, block) - 1;
  return row >= 0 && block < blocksOf({ segments }, row)[1] ? row : -1;
}

/** `block` -1: the segment itself, or its blocks are not listed. */
export interface Hit {
  readonly row: number;
  readonly block: number;
}

export function hitAt(
  shown: MapRows,
  layout: SegmentLayout,
  point: PointPx,
): Hit | null {
  const first = rowAt(layout, point.y);
  if (first < 0) return null;
  if (point.x < HEAD_PX) return { row: first, block: -1 };
  const bytes = layout.lineBytes[first] ?? 1;
  const perPx = bytes / layout.barsPx;
  const line = Math.floor((point.y - (layout.top[first] ?? 0) - ABOVE_PX) / LINE_PX);
  const inLine = (point.x - HEAD_PX) * perPx;
  const size = shown.segments.totalBytes[first] ?? 0;
  const numFolded = layout.numFolded[first] ?? 1;
  const within = line * bytes + inLine;
  const row = first + Math.min(Math.floor(within / size), numFolded - 1);
  const offset = within - (layout.offset[row] ?? 0);
  if (line < 0 || inLine > bytes || offset < 0 || offset >= size) return null;
  const [from, to] = blocksWithin(shown, row, offset, offset + perPx);
  const { state } = shown.blocks;
  for (let block = from; block < to; block += 1) {
    if ((state[block] ?? 0) > 0) return { row, block };
  }
  return { row, block: from < to ? from : -1 };
}

/** `far`: the first block of the next segment. */
export function steppedBlock(
  shown: MapRows,
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
