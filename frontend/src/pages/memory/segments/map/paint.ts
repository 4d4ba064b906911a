/**
 * Patterns carry the states, so that no colour has to: pending blocks are striped, free
 * ones beside live ones hatched.
 */

import { formatBytes, formatBytesExact } from "../../../../base/bytes";
import { tokens } from "../../../../base/tokens";
import { hexOf, pixelOf } from "../../../../render/palette";
import type { RectPx } from "../../../../render/viewport";
import { groupLabel, mixed } from "../../../../widgets/block_stack/paint/colours";
import { FONT, type Pen } from "../../../../widgets/export/pen";
import type { LegendEntry } from "../../../../widgets/plot/legend";
import { paintHatch } from "../../../../widgets/plot/strip";
import { fitting } from "../../../../widgets/plot/canvas";
import {
  blockPieces,
  blocksOf,
  blocksWithin,
  HEAD_PX,
  LINE_PX,
  pieces,
  rowsBetween,
} from "./layout";
import { blockColour, COLOURS, STATE, type MapPicture } from "./picture";
import { headWords, pinText } from "./text";

/** Left of the labels, where equal segments are folded. */
export const FOLD_PX = 16;
const HEAD_FONT = FONT.replace(/^\d+/, "12");
/** Neighbours differ: every other block is closer to the background. */
const TONES = [1, 0.84] as const;
/** A free block narrower than this has no note. */
const NOTE_LEAST_PX = 120;
/** Segments with a larger free share get a note on what pins them. */
const NOTE_LEAST_FREE = 0.5;

/** Rows of blocks; -1: none. */
interface MapMarks {
  readonly hovered: number;
  readonly selected: number;
  readonly segment: number | null;
}

export function paintMap(pen: Pen, of: MapPicture): void {
  const { answer, layout, theme } = of;
  const { segments, blocks } = answer;
  const { bg, border, bad } = tokens(theme);
  const own = COLOURS[theme];
  const toned = new Map<string, string>();
  const shade = (colour: string, block: number): string => {
    const keeps = TONES[block & 1] ?? 1;
    const key = `${colour}${keeps}`;
    const shaded = toned.get(key) ?? hexOf(mixed(pixelOf(colour), pixelOf(bg), keeps));
    toned.set(key, shaded);
    return shaded;
  };
  const rows = inSight(of);
  const wholeOf = (row: number) => {
    const [from, to] = bytesInSight(of, row);
    const [begin, size] = [Math.max(0, from), segments.totalBytes[row] ?? 0];
    return pieces(layout, row, begin, Math.min(size, to) - begin);
  };
  const [hatched, striped]: [RectPx[], RectPx[]] = [[], []];
  pen.translate(0, -of.scrollPx);
  for (const row of rows) {
    const isFree = segments.numActive[row] === 0;
    pen.fillStyle = isFree ? own.whole : own.split;
    for (const { x, y, width, height } of wholeOf(row)) {
      pen.fillRect(x, y, width, height);
    }
    if (!isFree) hatched.push(...wholeOf(row));
  }
  hatch(pen, of, hatched, 6);
  for (const row of rows) {
    let [lastX, lastY] = [-1, -1];
    const [from, to] = blocksWithin(answer, row, ...bytesInSight(of, row));
    for (let block = from; block < to; block += 1) {
      if (blocks.state[block] === STATE.free) continue;
      const isPending = blocks.state[block] === STATE.pending;
      pen.fillStyle = shade(blockColour(of, block), block);
      for (const piece of blockPieces(answer, layout, block)) {
        const { x, y, width, height } = piece;
        // One block per pixel is enough.
        if (width === 1 && x === lastX && y === lastY) continue;
        [lastX, lastY] = [x, y];
        pen.fillRect(x, y, width, height);
        if (isPending) striped.push(piece);
      }
    }
  }
  hatch(pen, of, striped, 9);
  for (const row of rows) {
    outline(pen, wholeOf(row), border, 1);
    if (layout.numFolded[row] === 1) paintNote(pen, of, row);
    if (layout.numFolded[row] !== 0) paintHead(pen, of, row);
  }
  for (const life of answer.why.lives) {
    outline(pen, blockPieces(answer, layout, blocks.life.indexOf(life)), bad, 3);
  }
  pen.translate(0, of.scrollPx);
}

export function paintMarks(pen: Pen, of: MapPicture, marks: MapMarks): void {
  const { answer, layout, theme } = of;
  const { segments, blocks } = answer;
  const { link, text } = tokens(theme);
  const { hovered, selected, segment } = marks;
  const stack = blocks.stack[hovered >= 0 ? hovered : selected] ?? -1;
  pen.translate(0, -of.scrollPx);
  for (const row of inSight(of)) {
    if (segments.address[row] === segment && layout.numFolded[row] === 1) {
      pen.fillStyle = link;
      pen.globalAlpha = 0.14;
      pen.fillRect(0, layout.top[row] ?? 0, HEAD_PX - 8, 30);
      pen.globalAlpha = 1;
    }
    if (stack < 0) continue;
    const [from, to] = blocksOf(answer, row);
    for (let block = from; block < to; block += 1) {
      if (blocks.stack[block] !== stack) continue;
      outline(pen, blockPieces(answer, layout, block), text, 1);
    }
  }
  outline(pen, blockPieces(answer, layout, hovered), text, 1.5);
  outline(pen, blockPieces(answer, layout, selected), link, 2.5);
  pen.translate(0, of.scrollPx);
}

function inSight({ layout, scrollPx, heightPx }: MapPicture): readonly number[] {
  const [first, end] = rowsBetween(layout, scrollPx, scrollPx + heightPx);
  return Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i);
}

/** Of a segment taller than the view: its visible lines. */
function bytesInSight(
  { layout, scrollPx, heightPx }: MapPicture,
  row: number,
): readonly [number, number] {
  const line = (y: number): number =>
    Math.floor((y - (layout.top[row] ?? 0)) / LINE_PX);
  const bytes = layout.lineBytes[row] ?? 1;
  return [(line(scrollPx) - 1) * bytes, (line(scrollPx + heightPx) + 1) * bytes];
}

function hatch(
  pen: Pen,
  { theme }: MapPicture,
  over: readonly RectPx[],
  apartPx: number,
): void {
  pen.globalAlpha = 0.6;
  paintHatch(pen, over, tokens(theme).bg, apartPx);
  pen.globalAlpha = 1;
}

function outline(
  pen: Pen,
  around: readonly RectPx[],
  colour: string,
  lineWidth: number,
): void {
  pen.strokeStyle = colour;
  pen.lineWidth = lineWidth;
  const half = lineWidth / 2;
  for (const { x, y, width, height } of around) {
    const inner = Math.max(0.5, width - lineWidth);
    pen.strokeRect(x + half, y + half, inner, height - lineWidth);
  }
}

function paintHead(pen: Pen, of: MapPicture, row: number): void {
  const { answer, layout, theme } = of;
  const { text, secondary } = tokens(theme);
  const top = layout.top[row] ?? 0;
  const { size, address, below } = headWords(of, row);
  const write = (label: string, x: number, y: number, colour: string): number => {
    const most = HEAD_PX - 8 - x;
    const fits = fitting(label, most, (candidate) => pen.measureText(candidate).width);
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

/** Names what pins a mostly free segment, in its largest free block. */
function paintNote(pen: Pen, of: MapPicture, row: number): void {
  const { answer, layout, theme } = of;
  const { segments, blocks } = answer;
  const free = segments.freeBytes[row] ?? 0;
  if (free < NOTE_LEAST_FREE * (segments.totalBytes[row] ?? 0)) return;
  const note = pinText(answer, segments.address[row] ?? -1);
  if (note === "") return;
  const [first, end] = blocksOf(answer, row);
  let widest = -1;
  for (let block = first; block < end; block += 1) {
    if (blocks.state[block] !== STATE.free) continue;
    if ((blocks.size[block] ?? 0) > (blocks.size[widest] ?? 0)) widest = block;
  }
  const rooms = blockPieces(answer, layout, widest);
  const most = Math.max(...rooms.map(({ width }) => width));
  const room = rooms.find(({ width }) => width === most);
  if (room === undefined || most < NOTE_LEAST_PX) return;
  pen.font = FONT;
  const fits = fitting(
    note,
    most - 20,
    (candidate) => pen.measureText(candidate).width,
  );
  const { bg, text } = tokens(theme);
  pen.textBaseline = "middle";
  pen.fillStyle = bg;
  pen.globalAlpha = 0.86;
  pen.fillRect(room.x + 5, room.y + 3, pen.measureText(fits).width + 6, 16);
  pen.globalAlpha = 1;
  pen.fillStyle = text;
  pen.fillText(fits, room.x + 8, room.y + room.height / 2 + 0.5);
}

export function legendOf({
  answer,
  fill,
  colours,
  theme,
  byteUnit,
}: MapPicture): readonly LegendEntry[] {
  const { allocated, pending, split, whole } = COLOURS[theme];
  const { bg } = tokens(theme);
  type Item = readonly [label: string, help: string, colour: string, bytes: number];
  const item = (
    [label, help, colour, bytes]: Item,
    isHatched = false,
  ): LegendEntry => ({
    label,
    colour,
    note: formatBytes(bytes, byteUnit),
    help: `${help}: ${formatBytesExact(bytes)}`,
    ...(isHatched ? { hatch: bg } : {}),
  });
  const rounded = "Blocks in use, as rounded by the allocator";
  const waits = "Freed, and retained until another stream finishes with it";
  const beside =
    "inactive_split: free blocks that share their segment with live ones, so that it cannot be returned";
  const returned = "Wholly free: torch.cuda.empty_cache() returns these";
  const besideBytes = answer.freeBytes - answer.wholeBytes;
  const live: readonly Item[] =
    fill === "state"
      ? [["allocated", rounded, allocated, answer.allocatedBytes]]
      : answer.categories.map((group, i) => {
          const colour = colours[i] ?? bg;
          return [groupLabel(group), "Allocated blocks", colour, group.bytes];
        });
  const hatched: readonly Item[] = [
    ["pending free", waits, pending, answer.pendingBytes],
    ["free, in use beside it", beside, split, besideBytes],
  ];
  const free: Item = ["free segments", returned, whole, answer.wholeBytes];
  const isThere = ([, , , bytes]: Item): boolean => bytes > 0;
  return [
    ...live.filter(isThere).map((entry) => item(entry)),
    ...hatched.filter(isThere).map((entry) => item(entry, true)),
    ...[free].filter(isThere).map((entry) => item(entry)),
  ];
}
