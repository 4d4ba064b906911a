/**
 * Names written on large areas, so that a picture reads without its legend: bands where
 * they are thick for long enough, blocks where one rectangle of them is. Pure.
 */

import { formatBytes } from "../../base/bytes";
import { numColumns, runBelow } from "../../render/runs";
import type { PointPx } from "../../render/gestures";
import type { RectPx, SizePx, Viewport } from "../../render/viewport";
import { pxToX, pxToY, xToPx, yToPx } from "../../render/viewport";
import { fitting } from "../plot/text";
import { groupLabel } from "./colours";
import type { BlockPicture } from "./picture";
import type { BlockTile } from "./tile";

export interface DirectLabel {
  readonly text: string;
  /** World point of its middle: it moves with the picture. */
  readonly x: number;
  readonly y: number;
  readonly kind: "band" | "block";
  /** Band or slot. */
  readonly of: number;
  /** It stands on more than its own area. */
  readonly overflows?: boolean;
}

export interface LabelNames {
  /** "" leaves a band without. */
  readonly band: (band: number) => string;
  readonly block: (slot: number) => string;
  /** Width of a text in px, in the letters of bands or of blocks. */
  readonly widthOf: (text: string, kind: DirectLabel["kind"]) => number;
}

export function namesOf(
  tile: BlockTile,
  { stacks, byteUnit }: Pick<BlockPicture, "stacks" | "byteUnit">,
  widthOf: LabelNames["widthOf"],
): LabelNames {
  const { bands } = tile.answer;
  return {
    // One band of everything needs no name.
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
/** Places at which a band's label is tried. */
const TRIES = 48;
/** A band that is nowhere level is named where it is this thick in the mean. */
const SLOPING_PX = 2 * BAND_PX;

interface Placed extends DirectLabel {
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
  const placed = tile.answer.bands.flatMap(
    (_, band) => bandLabel(drawing, band, names) ?? [],
  );
  for (const { slot, rect } of candidates(tile, view, size)) {
    if (placed.length >= MOST_BLOCKS) break;
    const text = fitting(names.block(slot), rect.width - 2 * PAD_PX, (one) =>
      names.widthOf(one, "block"),
    );
    if (text === "") continue;
    const [x, y] = [rect.x + rect.width / 2, rect.y + rect.height / 2];
    const box = textBox(x, y, names.widthOf(text, "block"));
    if (placed.some((other) => overlaps(other.box, box))) continue;
    placed.push({ ...world(view, size, box), text, kind: "block", of: slot, box });
  }
  return placed;
}

/** The world point in the middle of a box. */
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

/** Columns of the tile that are at least partly in sight. */
function seenColumns(tile: BlockTile, view: Viewport): readonly [number, number] {
  const from = Math.max(0, tile.columnAt(Math.max(view.x0, tile.low)));
  const to = tile.columnAt(Math.min(view.x1, tile.high));
  return [from, to < 0 ? tile.numColumns - 1 : to];
}

interface Spot {
  readonly room: number;
  readonly x: number;
  readonly y: number;
}

/** Where a band stays thickest over the width of its name. */
function bandLabel(
  { tile, view, size }: Drawing,
  band: number,
  names: LabelNames,
): Placed | null {
  const text = names.band(band);
  if (text === "") return null;
  const { edges, below, height } = tile.runs;
  const row = band * tile.numColumns;
  const textPx = names.widthOf(text, "band");
  const wantedPx = textPx + 2 * PAD_PX;
  const [from, to] = seenColumns(tile, view);
  let best: Spot | null = null;
  let sloping: Spot | null = null;
  for (let i = 0; i < TRIES; i += 1) {
    const left = (i / TRIES) * (size.widthPx - wantedPx);
    if (left < 0) break;
    const [x0, x1] = [left, left + wantedPx].map(
      (px) => view.x0 + (px / size.widthPx) * (view.x1 - view.x0),
    ) as [number, number];
    if (x0 < tile.low || x1 > tile.high) continue;
    let top = Infinity;
    let bottom = 0;
    let [lows, highs, num] = [0, 0, 0];
    let column = Math.max(from, tile.columnAt(x0));
    for (; column <= to && (edges[column] ?? 0) < x1; column += 1) {
      const low = below[row + column] ?? 0;
      bottom = Math.max(bottom, low);
      const high = low + (height[row + column] ?? 0);
      top = Math.min(top, high);
      [lows, highs, num] = [lows + low, highs + high, num + 1];
    }
    const spot = (high: number, low: number): Spot => {
      const [topPx, bottomPx] = [high, low].map((y) =>
        within(yToPx(view, size.heightPx, y), size.heightPx),
      ) as [number, number];
      const y = (topPx + bottomPx) / 2;
      return { room: bottomPx - topPx, x: left + wantedPx / 2, y };
    };
    const level = spot(top, bottom);
    if (level.room > (best?.room ?? BAND_PX)) best = level;
    const mean = spot(highs / Math.max(num, 1), lows / Math.max(num, 1));
    if (mean.room > (sloping?.room ?? SLOPING_PX)) sloping = mean;
  }
  const chosen = best ?? sloping;
  if (chosen === null) return null;
  const box = textBox(chosen.x, chosen.y, textPx);
  const overflows = best === null ? { overflows: true } : {};
  return { ...world(view, size, box), text, kind: "band", of: band, box, ...overflows };
}

interface Candidate {
  readonly slot: number;
  readonly rect: RectPx;
}

/** One rectangle for each block that has one large enough, the largest first. */
function candidates(
  tile: BlockTile,
  view: Viewport,
  size: SizePx,
): readonly Candidate[] {
  const { runs } = tile;
  const { slot, first, last, edges, size: bytes, band, below } = runs;
  const columns = numColumns(runs);
  const perByte = size.heightPx / Math.abs(view.y1 - view.y0);
  const found = new Map<number, Candidate>();
  for (let run = 0; run < slot.length; run += 1) {
    const block = slot[run] ?? 0;
    if ((bytes[block] ?? 0) * perByte < BLOCK_PX) continue;
    const end = (last[run] ?? 0) + 1;
    const whole = xToPx(view, size.widthPx, edges[end] ?? 0);
    if (
      whole - xToPx(view, size.widthPx, edges[first[run] ?? 0] ?? 0) <
      BLOCK_LEAST_WIDTH_PX
    ) {
      continue;
    }
    const row = (band[block] ?? 0) * columns;
    // A run moves with what lies below its band: each level part is a rectangle.
    for (let column = first[run] ?? 0; column < end;) {
      let next = column + 1;
      while (next < end && below[row + next] === below[row + column]) next += 1;
      const rect = rectOf(tile, view, size, run, column, next);
      const area = rect.width * rect.height;
      const known = found.get(block)?.rect;
      const best = known === undefined ? 0 : known.width * known.height;
      if (
        rect.width >= BLOCK_LEAST_WIDTH_PX &&
        rect.height >= BLOCK_PX &&
        area > best
      ) {
        found.set(block, { slot: block, rect });
      }
      column = next;
    }
  }
  return [...found.values()].sort(
    (a, b) => b.rect.width * b.rect.height - a.rect.width * a.rect.height,
  );
}

function within(px: number, most: number): number {
  return Math.min(Math.max(px, 0), most);
}

/** The part in sight of a run over columns `from` up to, without, `to`, in px. */
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
