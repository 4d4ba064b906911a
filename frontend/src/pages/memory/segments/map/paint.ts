/**
 * The map, painted: words beside each segment, its blocks by what they hold or by their
 * state, and who pins it. Patterns carry the states, so that no colour has to: waiting
 * blocks are striped, free ones that share their segment with live ones hatched.
 */

import type { SegmentsResponse } from "../../../../api/types.gen";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../../../base/bytes";
import { tokens, type Theme } from "../../../../base/tokens";
import { hexOf, pixelOf } from "../../../../render/palette";
import { groupLabel, mixed } from "../../../../widgets/block_stack/colours";
import { FONT, type Pen } from "../../../../widgets/export/pen";
import type { Named } from "../../../../widgets/plot/legend";
import { fitting } from "../../../../widgets/plot/text";
import {
  blockPieces,
  blocksOf,
  blocksWithin,
  LINE_PX,
  pieces,
  rowsBetween,
  type Piece,
  type SegmentLayout,
} from "./layout";
import { headWords, pinText } from "./words";

/** What the colours of live blocks say. */
type SegmentFill = "category" | "state";

/** `SegmentBlocks.state`. */
export const STATE = { free: 0, allocated: 1, pending: 2 } as const;

/** Left of a segment's blocks; what is longer ends in an ellipsis. */
export const HEAD_PX = 216;
const RIGHT_PX = 12;
/** Left of the words, where equal segments are folded. */
export const FOLD_PX = 16;
const HEAD_FONT = FONT.replace(/^\d+/, "12");
/** Every other block is a little nearer to the background: neighbours stay apart. */
const TONES = [1, 0.84] as const;
/** A note is written where a free block has this much room for it. */
const NOTE_LEAST_PX = 120;
/** Of a segment that is freer than this it is said who pins it. */
const NOTE_LEAST_FREE = 0.5;

const COLOURS: Readonly<
  Record<Theme, Readonly<Record<"split" | "whole" | "allocated" | "pending", string>>>
> = {
  light: {
    split: "#c3c8ce",
    whole: "#e9ebee",
    allocated: "#1f6fc4",
    pending: "#e7ad51",
  },
  dark: {
    split: "#63676d",
    whole: "#464a4f",
    allocated: "#5aa7ee",
    pending: "#e2b84f",
  },
};

/** What is drawn, and the part of it in sight with all that stands beside the blocks. */
export interface MapPicture {
  readonly answer: SegmentsResponse;
  readonly layout: SegmentLayout;
  readonly fill: SegmentFill;
  /** Of the answer's categories. */
  readonly colours: readonly string[];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly scrollPx: number;
}

/** What stands out; rows of blocks, -1: none. */
interface MapMarks {
  readonly hovered: number;
  readonly selected: number;
  /** Address of the chosen segment. */
  readonly segment: number | null;
}

export function barsPx({ widthPx }: MapPicture): number {
  return Math.max(1, widthPx - HEAD_PX - RIGHT_PX);
}

/** A live block's colour; `block & 1` is its tone. */
export function blockColour(
  { answer: { blocks }, fill, colours, theme }: MapPicture,
  block: number,
): string {
  const own = COLOURS[theme];
  const colour = colours[blocks.category[block] ?? -1];
  if (blocks.state[block] === STATE.free) return own.split;
  if (fill === "category" && colour !== undefined) return colour;
  return blocks.state[block] === STATE.pending ? own.pending : own.allocated;
}

export function paintMap(pen: Pen, of: MapPicture): void {
  const { answer, layout, theme } = of;
  const { segments, blocks } = answer;
  const { bg, border } = tokens(theme);
  const own = COLOURS[theme];
  const toned = new Map<string, string>();
  const shade = (colour: string, block: number): string => {
    const keeps = TONES[block & 1] ?? 1;
    const key = `${colour}${keeps}`;
    const known = toned.get(key) ?? hexOf(mixed(pixelOf(colour), pixelOf(bg), keeps));
    toned.set(key, known);
    return known;
  };
  const [first, end] = inSight(of);
  const [hatched, striped]: [Piece[], Piece[]] = [[], []];
  for (let row = first; row < end; row += 1) {
    const all = pieces(layout, row, 0, segments.totalBytes[row] ?? 0);
    pen.fillStyle = segments.numActive[row] === 0 ? own.whole : own.split;
    for (const piece of all) pen.fillRect(...rect(piece, of));
    if ((segments.numActive[row] ?? 0) > 0) hatched.push(...all);
  }
  hatch(pen, of, hatched, bg, 6);
  for (let row = first; row < end; row += 1) {
    let [lastLeft, lastTop] = [-1, -1];
    const [from, to] = blocksWithin(answer, row, ...bytesInSight(of, row));
    for (let block = from; block < to; block += 1) {
      if (blocks.state[block] === STATE.free) continue;
      const isPending = blocks.state[block] === STATE.pending;
      pen.fillStyle = shade(blockColour(of, block), block);
      for (const piece of blockPieces(answer, layout, block)) {
        const [left, top, wide, high] = rect(piece, of);
        // Of those that share a pixel one is enough.
        if (wide === 1 && left === lastLeft && top === lastTop) continue;
        [lastLeft, lastTop] = [left, top];
        pen.fillRect(left, top, wide, high);
        if (isPending) striped.push(piece);
      }
    }
  }
  hatch(pen, of, striped, bg, 9);
  for (let row = first; row < end; row += 1) {
    outline(pen, of, pieces(layout, row, 0, segments.totalBytes[row] ?? 0), border, 1);
    if (layout.numFolded[row] === 1) paintNote(pen, of, row);
    if (layout.numFolded[row] !== 0) paintHead(pen, of, row);
  }
  const { bad } = tokens(theme);
  for (const life of answer.why.lives) {
    const block = blocks.life.indexOf(life);
    outline(pen, of, blockPieces(answer, layout, block), bad, 3);
  }
}

/** What moves with the pointer, and what is chosen. */
export function paintMarks(pen: Pen, of: MapPicture, marks: MapMarks): void {
  const { answer, layout, theme } = of;
  const { segments, blocks } = answer;
  const { link, text } = tokens(theme);
  const { hovered, selected, segment } = marks;
  const stack = blocks.stack[hovered >= 0 ? hovered : selected] ?? -1;
  const [first, end] = inSight(of);
  for (let row = first; row < end; row += 1) {
    if (segments.address[row] === segment && layout.numFolded[row] === 1) {
      pen.fillStyle = link;
      pen.globalAlpha = 0.14;
      const top = (layout.top[row] ?? 0) - of.scrollPx;
      pen.fillRect(0, top, HEAD_PX - 8, 30);
      pen.globalAlpha = 1;
    }
    if (stack < 0) continue;
    const [from, to] = blocksOf(answer, row);
    for (let block = from; block < to; block += 1) {
      if (blocks.stack[block] !== stack) continue;
      outline(pen, of, blockPieces(answer, layout, block), text, 1);
    }
  }
  outline(pen, of, blockPieces(answer, layout, hovered), text, 1.5);
  outline(pen, of, blockPieces(answer, layout, selected), link, 2.5);
}

function inSight({ layout, scrollPx, heightPx }: MapPicture) {
  return rowsBetween(layout, scrollPx, scrollPx + heightPx);
}

/** Of a segment that is longer than the sight: its bytes from the first line up to the last. */
function bytesInSight(
  { layout, scrollPx, heightPx }: MapPicture,
  row: number,
): readonly [number, number] {
  const line = (y: number): number =>
    Math.floor((y - (layout.top[row] ?? 0)) / LINE_PX);
  const bytes = layout.lineBytes[row] ?? 1;
  return [(line(scrollPx) - 1) * bytes, (line(scrollPx + heightPx) + 1) * bytes];
}

/** Whole px, so that blocks meet; at least one, so that nothing thin vanishes. */
function rect(
  { x0, x1, y0, y1 }: Piece,
  of: MapPicture,
): readonly [left: number, top: number, wide: number, high: number] {
  const full = barsPx(of);
  const left = Math.min(Math.round(x0 * full), Math.floor(full) - 1);
  const wide = Math.max(1, Math.round(x1 * full) - left);
  return [HEAD_PX + left, y0 - of.scrollPx, wide, y1 - y0];
}

/** Slanted lines over some pieces. */
function hatch(
  pen: Pen,
  of: MapPicture,
  over: readonly Piece[],
  colour: string,
  apartPx: number,
): void {
  const { widthPx, heightPx } = of;
  if (over.length === 0) return;
  pen.save();
  pen.beginPath();
  for (const piece of over) pen.rect(...rect(piece, of));
  pen.clip();
  pen.beginPath();
  for (let x = HEAD_PX - heightPx; x < widthPx; x += apartPx) {
    pen.moveTo(x, heightPx);
    pen.lineTo(x + heightPx, 0);
  }
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.globalAlpha = 0.6;
  pen.stroke();
  pen.restore();
}

function outline(
  pen: Pen,
  of: MapPicture,
  around: readonly Piece[],
  colour: string,
  lineWidth: number,
): void {
  pen.strokeStyle = colour;
  pen.lineWidth = lineWidth;
  const half = lineWidth / 2;
  for (const piece of around) {
    const [left, top, wide, high] = rect(piece, of);
    const inner = Math.max(0.5, wide - lineWidth);
    pen.strokeRect(left + half, top + half, inner, high - lineWidth);
  }
}

function paintHead(pen: Pen, of: MapPicture, row: number): void {
  const { answer, layout, theme } = of;
  const { text, secondary } = tokens(theme);
  const top = (layout.top[row] ?? 0) - of.scrollPx;
  const { size, address, below } = headWords(of, row);
  const write = (words: string, x: number, y: number, colour: string): number => {
    const most = HEAD_PX - 8 - x;
    const fits = fitting(words, most, (one) => pen.measureText(one).width);
    pen.fillStyle = colour;
    pen.fillText(fits, x, top + y);
    return x + pen.measureText(fits).width + 6;
  };
  pen.textBaseline = "alphabetic";
  pen.font = `500 ${HEAD_FONT}`;
  if ((answer.segments.numAlike[row] ?? 1) > 1) {
    write(layout.numFolded[row] === 1 ? "▾" : "▸", 2, 12, secondary);
  }
  const end = write(size, FOLD_PX, 12, text);
  pen.font = HEAD_FONT;
  write(address, end, 12, secondary);
  write(below, FOLD_PX, 27, secondary);
}

/** Who keeps a mostly free segment, written into its largest free block. */
function paintNote(pen: Pen, of: MapPicture, row: number): void {
  const { answer, layout, theme } = of;
  const { segments, blocks } = answer;
  const free = segments.freeBytes[row] ?? 0;
  if (free < NOTE_LEAST_FREE * (segments.totalBytes[row] ?? 0)) return;
  const words = pinText(answer, segments.address[row] ?? -1);
  if (words === "") return;
  const [first, end] = blocksOf(answer, row);
  let widest = -1;
  for (let block = first; block < end; block += 1) {
    if (blocks.state[block] !== STATE.free) continue;
    if ((blocks.size[block] ?? 0) > (blocks.size[widest] ?? 0)) widest = block;
  }
  const rooms = blockPieces(answer, layout, widest).map((piece) => rect(piece, of));
  const room = rooms.reduce((a, b) => (b[2] > a[2] ? b : a), [0, 0, 0, 0]);
  const [left, top, wide, high] = room;
  if (wide < NOTE_LEAST_PX) return;
  pen.font = FONT;
  const fits = fitting(words, wide - 20, (one) => pen.measureText(one).width);
  const { bg, text } = tokens(theme);
  pen.textBaseline = "middle";
  pen.fillStyle = bg;
  pen.globalAlpha = 0.86;
  pen.fillRect(left + 5, top + 3, pen.measureText(fits).width + 6, 16);
  pen.globalAlpha = 1;
  pen.fillStyle = text;
  pen.fillText(fits, left + 8, top + high / 2 + 0.5);
}

/** What the map shows, with the bytes of each. */
export function legendOf({
  answer,
  fill,
  colours,
  theme,
  byteUnit,
}: MapPicture): readonly Named[] {
  const own = COLOURS[theme];
  const { bg } = tokens(theme);
  const item = (
    label: string,
    help: string,
    colour: string,
    bytes: number,
    hatch?: string,
  ): readonly Named[] => {
    const note = formatBytes(bytes, byteUnit);
    const said = { label, colour, note, help: `${help}: ${formatBytesExact(bytes)}` };
    return bytes > 0 ? [hatch === undefined ? said : { ...said, hatch }] : [];
  };
  return [
    ...(fill === "state"
      ? item(
          "allocated",
          "Blocks in use, as rounded by the allocator",
          own.allocated,
          answer.allocatedBytes,
        )
      : answer.categories.flatMap((group, i) =>
          item(groupLabel(group), "Allocated blocks", colours[i] ?? bg, group.bytes),
        )),
    ...item(
      "pending free",
      "Freed, and kept until another stream has finished with it",
      own.pending,
      answer.pendingBytes,
      bg,
    ),
    ...item(
      "free, in use beside it",
      "inactive_split: free blocks that share their segment with live ones, so that it cannot be returned",
      own.split,
      answer.freeBytes - answer.wholeBytes,
      bg,
    ),
    ...item(
      "free segments",
      "Wholly free: torch.cuda.empty_cache() returns these",
      own.whole,
      answer.wholeBytes,
    ),
  ];
}
