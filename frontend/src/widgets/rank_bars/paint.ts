/** Paints the rank strip on a canvas: bars, the capacity, the median. */

import type { RankStrip } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import { FONT } from "../export/pen";
import type { StripBar, StripLayout } from "./layout";

export interface StripPaint {
  readonly strip: RankStrip;
  readonly layout: StripLayout;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
  readonly heightPx: number;
  /** Index of the bar under the pointer or the keyboard's cursor. */
  readonly hovered: number | null;
  readonly rank: number | null;
  /** Ranks drawn at full strength; null means all. */
  readonly filter: ReadonlySet<number> | null;
}

/** Left of the bars stand the axis texts, above them the marks. */
export const STRIP_LEFT_PX = 64;
const STRIP_TOP_PX = 18;
const BOTTOM_PX = 20;

export function paintStrip(context: CanvasRenderingContext2D, paint: StripPaint): void {
  const { heightPx, layout } = paint;
  context.font = FONT;
  const bottomPx = heightPx - BOTTOM_PX;
  const y = (bytes: number): number =>
    bottomPx - (bytes / layout.topBytes) * (bottomPx - STRIP_TOP_PX);
  paintGrid(context, paint, y);
  layout.bars.forEach((bar, i) => paintBar(context, paint, bar, i, y, bottomPx));
  paintLimits(context, paint, y);
  paintRankTicks(context, paint, bottomPx);
}

type Scale = (bytes: number) => number;

function paintGrid(
  context: CanvasRenderingContext2D,
  { layout, theme, widthPx, byteUnit }: StripPaint,
  y: Scale,
): void {
  const colours = tokens(theme);
  const ticks = valueTicks(0, layout.topBytes, 4, "bytes", byteUnit, false);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of ticks) {
    const at = Math.round(y(tick.value)) + 0.5;
    if (at < STRIP_TOP_PX - 1) continue;
    context.fillStyle = colours.grid;
    context.fillRect(STRIP_LEFT_PX, at - 0.5, widthPx - STRIP_LEFT_PX, 1);
    context.fillStyle = colours.secondary;
    context.fillText(tick.text, STRIP_LEFT_PX - 8, at);
  }
}

type Look = "bad" | "warn" | "plain";

function lookOf({ strip }: StripPaint, bar: StripBar): Look {
  const ranks = bar.members.map((i) => strip.rank[i]);
  if (bar.members.some((i) => (strip.numOoms[i] ?? 0) > 0)) return "bad";
  if (strip.outliers.some((one) => ranks.includes(one))) return "warn";
  return "plain";
}

function paintBar(
  context: CanvasRenderingContext2D,
  paint: StripPaint,
  bar: StripBar,
  i: number,
  y: Scale,
  bottomPx: number,
): void {
  const { layout, strip, theme, filter, rank } = paint;
  const colours = tokens(theme);
  const look = lookOf(paint, bar);
  // Whole pixels keep the edges sharp; bars that touch must also meet.
  const left = STRIP_LEFT_PX + Math.round(i * layout.pitchPx);
  const right =
    layout.barPx < layout.pitchPx
      ? left + Math.round(layout.barPx)
      : STRIP_LEFT_PX + Math.round((i + 1) * layout.pitchPx);
  const width = Math.max(1, right - left);
  const inFilter =
    filter === null || bar.members.some((m) => filter.has(strip.rank[m] ?? -1));
  const chosen = rank !== null && bar.members.some((m) => strip.rank[m] === rank);
  const dimmed = !inFilter || (rank !== null && !chosen);
  if (Number.isNaN(bar.highBytes)) {
    context.fillStyle = colours.grid;
    context.fillRect(left, bottomPx - 2, width, 2);
  } else {
    const top = Math.min(bottomPx - 1, Math.round(y(bar.highBytes)));
    context.fillStyle =
      look === "bad" ? colours.bad : look === "warn" ? colours.warn : colours.link;
    const strong = look !== "plain" || chosen || paint.hovered === i;
    const alpha = (dimmed ? 0.4 : 1) * (strong ? 1 : 0.6);
    // Of several ranks in one bar, the part that only some reach is fainter.
    const solid = Math.max(top, Math.round(y(bar.lowBytes)));
    context.globalAlpha = strong ? alpha : alpha * 0.7;
    context.fillRect(left, top, width, solid - top);
    context.globalAlpha = alpha;
    context.fillRect(left, solid, width, bottomPx - solid);
    context.globalAlpha = 1;
    if (bar.members.some((m) => (strip.numOoms[m] ?? 0) > 0)) {
      paintCross(context, (left + right) / 2, top - 8, colours.bad);
    }
  }
  if (paint.hovered === i) {
    context.strokeStyle = colours.text;
    context.lineWidth = 1;
    context.strokeRect(
      left - 1.5,
      STRIP_TOP_PX - 0.5,
      width + 3,
      bottomPx - STRIP_TOP_PX,
    );
  }
}

/** An OOM is a cross, not only a colour. */
function paintCross(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  colour: string,
): void {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - 3.5, y - 3.5);
  context.lineTo(x + 3.5, y + 3.5);
  context.moveTo(x - 3.5, y + 3.5);
  context.lineTo(x + 3.5, y - 3.5);
  context.stroke();
}

function paintLimits(
  context: CanvasRenderingContext2D,
  { layout, strip, theme, widthPx }: StripPaint,
  y: Scale,
): void {
  const colours = tokens(theme);
  const line = (bytes: number, dash: readonly number[], colour: string): void => {
    const at = Math.round(y(bytes)) + 0.5;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.setLineDash([...dash]);
    context.beginPath();
    context.moveTo(STRIP_LEFT_PX, at);
    context.lineTo(widthPx, at);
    context.stroke();
    context.setLineDash([]);
  };
  if (layout.capacityBytes !== null) line(layout.capacityBytes, [6, 4], colours.text);
  if (strip.medianPeakBytes !== null && strip.rank.length > 2) {
    line(strip.medianPeakBytes, [2, 3], colours.secondary);
  }
}

function paintRankTicks(
  context: CanvasRenderingContext2D,
  { layout, strip, theme, widthPx }: StripPaint,
  bottomPx: number,
): void {
  const colours = tokens(theme);
  context.fillStyle = colours.secondary;
  context.textAlign = "center";
  context.textBaseline = "top";
  // A rank's text needs room for its digits and a space on both sides.
  const digits = Math.max(...strip.rank).toString().length;
  const every = Math.max(1, Math.ceil((digits * 7 + 12) / layout.pitchPx));
  for (let i = 0; i < layout.bars.length; i += niceEvery(every)) {
    const bar = layout.bars[i];
    const shown = bar?.members.length === 1 ? bar.top : bar?.members[0];
    const rank = shown === undefined ? undefined : strip.rank[shown];
    const x = STRIP_LEFT_PX + i * layout.pitchPx + layout.barPx / 2;
    if (rank !== undefined && x < widthPx - 8) {
      context.fillText(rank.toString(), x, bottomPx + 5);
    }
  }
}

/** 1, 2, 4, 8 ...: ranks come in powers of two. */
function niceEvery(least: number): number {
  return 2 ** Math.ceil(Math.log2(least));
}
