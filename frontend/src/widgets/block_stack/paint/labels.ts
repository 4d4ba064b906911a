/** Bands are named where thick for long enough, blocks where a rectangle is large. */

import { formatBytes } from "../../../base/bytes";
import { runBelow } from "../../../render/raster/runs";
import type { PointPx } from "../../../render/gestures";
import type { RectPx, SizePx, Viewport } from "../../../render/viewport";
import { pxToX, pxToY, xToPx, yToPx } from "../../../render/viewport";
import { fitting } from "../../plot/canvas";
import { groupLabel } from "./colours";
import type { BlockPicture, DirectLabel } from "../picture";
import type { BlockTile } from "../tile";

interface LabelNames {
  /** "": no label. */
  readonly band: (band: number) => string;
  readonly block: (slot: number) => string;
  /** Px, in the font of bands or of blocks. */
  readonly widthOf: (text: string, kind: DirectLabel["kind"]) => number;
}

export function namesOf(
  tile: BlockTile,
  { stacks, byteUnit }: Pick<BlockPicture, "stacks" | "byteUnit">,
  widthOf: LabelNames["widthOf"],
): LabelNames {
  const { bands } = tile.answer;
  return {
    // A single band needs no name.
    band: (band) => {
      const own = bands[band];
      return bands.length < 2 || own === undefined ? "" : groupLabel(own);
    },
    block: (slot) => {
      if (stacks === null) return "";
      const { stack, size } = tile.factsOf(slot);
      const place = stack < 0 ? "" : `${stacks.stackPlace(stack)}  `;
      return `${place}${formatBytes(size, byteUnit)}`;
    },
    widthOf,
  };
}

const BAND_PX = 18;
const BLOCK_PX = 15;
const BLOCK_LEAST_WIDTH_PX = 72;
const PAD_PX = 6;
const MOST_BLOCKS = 80;
/** A band that is nowhere level needs this mean thickness; its name crosses its edges. */
const SLOPING_PX = 3 * BAND_PX;
/** Places tried for a band's label. */
const TRIES = 48;

interface PlacedLabel extends DirectLabel {
  readonly box: RectPx;
}

interface Drawing {
  readonly tile: BlockTile;
  readonly view: Viewport;
  readonly size: SizePx;
}

export function directLabels(
  drawing: Drawing,
  names: LabelNames,
): readonly DirectLabel[] {
  const { tile, view, size } = drawing;
  if (tile.numColumns === 0 || view.x1 <= view.x0) return [];
  const large = candidates(tile, view, size);
  const placed = tile.answer.bands.flatMap(
    (_, band) => bandLabel(drawing, band, names, large) ?? [],
  );
  for (const { slot, rect } of large) {
    if (placed.length >= MOST_BLOCKS) break;
    const text = fitting(names.block(slot), rect.width - 2 * PAD_PX, (shortened) =>
      names.widthOf(shortened, "block"),
    );
    if (text === "") continue;
    const [x, y] = [rect.x + rect.width / 2, rect.y + rect.height / 2];
    const box = textBox(x, y, names.widthOf(text, "block"));
    if (placed.some((other) => overlaps(other.box, box))) continue;
    placed.push({ ...world(view, size, box), text, kind: "block", of: slot, box });
  }
  return placed;
}

function world(view: Viewport, { widthPx, heightPx }: SizePx, box: RectPx): PointPx {
  return {
    x: pxToX(view, widthPx, box.x + box.width / 2),
    y: pxToY(view, heightPx, box.y + box.height / 2),
  };
}

function textBox(x: number, y: number, width: number): RectPx {
  return { x: x - width / 2, y: y - BLOCK_PX / 2, width, height: BLOCK_PX };
}

function overlaps(a: RectPx, b: RectPx): boolean {
  return (
    a.x < b.x + b.width + 4 &&
    b.x < a.x + a.width + 4 &&
    a.y < b.y + b.height &&
    b.y < a.y + a.height
  );
}

/**
 * In its largest block, else where the band is thickest over the width of its name, else
 * where it is so at the mean.
 */
function bandLabel(
  { tile, view, size }: Drawing,
  band: number,
  names: LabelNames,
  large: readonly Candidate[],
): PlacedLabel | null {
  const text = names.band(band);
  if (text === "") return null;
  const { edges, below, height } = tile.runs;
  const row = band * tile.numColumns;
  const textPx = names.widthOf(text, "band");
  const wantedPx = textPx + 2 * PAD_PX;
  const toPx = (y: number): number =>
    within(yToPx(view, size.heightPx, y), size.heightPx);
  const own = large.find(
    ({ slot, rect }) =>
      tile.runs.band[slot] === band && rect.width >= wantedPx && rect.height >= BAND_PX,
  )?.rect;
  let best = own && textBox(own.x + wantedPx / 2, own.y + BAND_PX / 2, textPx);
  let sloping: RectPx | undefined;
  let [most, mostMean] = [BAND_PX, SLOPING_PX];
  for (let i = 0; i < TRIES && own === undefined; i += 1) {
    const left = (i / TRIES) * (size.widthPx - wantedPx);
    if (left < 0) break;
    const x0 = pxToX(view, size.widthPx, left);
    const x1 = pxToX(view, size.widthPx, left + wantedPx);
    if (x0 < tile.low || x1 > tile.high) continue;
    let top = Infinity;
    let [bottom, lows, highs] = [0, 0, 0];
    // No array: every band walks the columns at every place tried.
    const begin = tile.columnAt(x0);
    let column = begin;
    for (; column < tile.numColumns && (edges[column] ?? 0) < x1; column += 1) {
      const low = below[row + column] ?? 0;
      const high = low + (height[row + column] ?? 0);
      top = Math.min(top, high);
      bottom = Math.max(bottom, low);
      lows += low;
      highs += high;
    }
    const middle = left + wantedPx / 2;
    const topPx = toPx(top);
    const room = toPx(bottom) - topPx;
    if (room > most) {
      most = room;
      best = textBox(middle, topPx + BAND_PX / 2, textPx);
    }
    const highPx = toPx(highs / (column - begin));
    const lowPx = toPx(lows / (column - begin));
    if (lowPx - highPx > mostMean) {
      mostMean = lowPx - highPx;
      sloping = textBox(middle, (highPx + lowPx) / 2, textPx);
    }
  }
  const box = best ?? sloping;
  if (box === undefined) return null;
  const overflows = best === undefined;
  return { ...world(view, size, box), text, kind: "band", of: band, box, overflows };
}

interface Candidate {
  readonly slot: number;
  readonly rect: RectPx;
}

/** One rectangle per block, the largest first. */
function candidates(
  tile: BlockTile,
  view: Viewport,
  size: SizePx,
): readonly Candidate[] {
  const { slot, first, last, edges, size: bytes } = tile.runs;
  const perByte = size.heightPx / Math.abs(view.y1 - view.y0);
  const perX = size.widthPx / (view.x1 - view.x0);
  const area = (rect: RectPx): number => rect.width * rect.height;
  const candidateByBlock = new Map<number, Candidate>();
  for (let run = 0; run < slot.length; run += 1) {
    const block = slot[run] ?? 0;
    if ((bytes[block] ?? 0) * perByte < BLOCK_PX) continue;
    const span = (edges[(last[run] ?? 0) + 1] ?? 0) - (edges[first[run] ?? 0] ?? 0);
    if (span * perX < BLOCK_LEAST_WIDTH_PX) continue;
    tile.eachPart(run, (from, to) => {
      // Most parts of a long block are narrow: skip them before making a rectangle.
      if (((edges[to] ?? 0) - (edges[from] ?? 0)) * perX < BLOCK_LEAST_WIDTH_PX) return;
      const rect = rectOf(tile, view, size, run, from, to);
      const previous = candidateByBlock.get(block);
      const large = rect.width >= BLOCK_LEAST_WIDTH_PX && rect.height >= BLOCK_PX;
      if (large && (previous === undefined || area(rect) > area(previous.rect))) {
        candidateByBlock.set(block, { slot: block, rect });
      }
    });
  }
  return [...candidateByBlock.values()].sort((a, b) => area(b.rect) - area(a.rect));
}

function within(px: number, most: number): number {
  return Math.min(Math.max(px, 0), most);
}

/** The visible part of a run over columns [from, to), in px. */
export function rectOf(
  tile: BlockTile,
  view: Viewport,
  size: SizePx,
  run: number,
  from: number,
  to: number,
): RectPx {
  const { widthPx, heightPx } = size;
  const { edges, size: bytes, slot } = tile.runs;
  const low = runBelow(tile.runs, run, from);
  const high = low + (bytes[slot[run] ?? 0] ?? 0);
  const x = within(xToPx(view, widthPx, edges[from] ?? 0), widthPx);
  const right = within(xToPx(view, widthPx, edges[to] ?? 0), widthPx);
  const bottom = within(yToPx(view, heightPx, low), heightPx);
  const y = within(yToPx(view, heightPx, high), heightPx);
  return { x, y, width: right - x, height: bottom - y };
}
