/** Axes, spans, marks and the cursor of the stacked categories, on a canvas in CSS px. */

import type { ModuleMark } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import type { RectPx, SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import { axisTicks, type StackAxis } from "./axis";
import { numRows, shortName, type Span, type SpanKind } from "./spans";

/** Left and right as in the line charts, so that plots stand below each other. */
export const GUTTER = { left: 72, right: 14, top: 16 } as const;
export const SPAN_ROW_PX = 16;
/** Between the plot and the spans stand the ticks' texts. */
export const AXIS_PX = 24;

const FONT = "11px Roboto, Helvetica, Arial, sans-serif";
const LABEL_LEAST_PX = 22;

export const MARK_LABEL: Readonly<Record<ModuleMark["kind"], string>> = {
  before_optimizer: "optimizer",
  after_optimizer: "",
  peak: "peak",
};

export interface StackPaint {
  readonly view: Viewport;
  readonly size: SizePx;
  readonly axis: StackAxis;
  readonly spans: readonly Span[];
  readonly marks: readonly ModuleMark[];
  /** The highest total; the peak's mark ends there. */
  readonly peakBytes: number;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** Fqn of the module whose spans are outlined. */
  readonly selected: string | null;
  /** The moment that the table shows. */
  readonly moment: number | null;
}

/** Where the strip of spans begins, below the canvas's top. */
export function spansTop(size: SizePx): number {
  return GUTTER.top + size.heightPx + AXIS_PX;
}

export function spansHeight(spans: readonly Span[]): number {
  return numRows(spans) * SPAN_ROW_PX;
}

export function paintFrame(context: CanvasRenderingContext2D, paint: StackPaint): void {
  paintAxes(context, paint);
  const { size } = paint;
  context.save();
  context.beginPath();
  context.rect(GUTTER.left, 0, size.widthPx, spansTop(size) + spansHeight(paint.spans));
  context.clip();
  paintSpans(context, paint);
  paintMarks(context, paint);
  context.restore();
}

function paintAxes(context: CanvasRenderingContext2D, paint: StackPaint): void {
  const { view, size, theme, axis, byteUnit } = paint;
  const { secondary, border } = tokens(theme);
  const bottom = GUTTER.top + size.heightPx;
  context.font = FONT;
  context.lineWidth = 1;
  context.strokeStyle = border;
  context.fillStyle = secondary;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  for (const tick of axisTicks(view.x0, view.x1, size.widthPx, axis)) {
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, tick.value)) + 0.5;
    stroke(context, [x, bottom, x, bottom + 4]);
    context.fillText(tick.text, x, bottom + 16);
  }
  context.textAlign = "right";
  const most = Math.max(2, Math.floor(size.heightPx / 36));
  for (const tick of valueTicks(0, view.y0, most, "bytes", byteUnit)) {
    const y = Math.round(GUTTER.top + yToPx(view, size.heightPx, tick.value)) + 0.5;
    context.globalAlpha = 0.7;
    stroke(context, [GUTTER.left, y, GUTTER.left + size.widthPx, y]);
    context.globalAlpha = 1;
    context.fillText(tick.text, GUTTER.left - 8, y + 4);
  }
}

function stroke(
  context: CanvasRenderingContext2D,
  [x0, y0, x1, y1]: readonly [number, number, number, number],
): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/** The rectangle of a span in px of the canvas; null where it is out of sight. */
export function spanRect(span: Span, paint: StackPaint): RectPx | null {
  const { view, size } = paint;
  if (span.x1 < view.x0 || span.x0 > view.x1) return null;
  const left = Math.max(-2, xToPx(view, size.widthPx, span.x0));
  const right = Math.min(size.widthPx + 2, xToPx(view, size.widthPx, span.x1));
  return {
    x: GUTTER.left + left,
    y: spansTop(size) + span.row * SPAN_ROW_PX,
    width: Math.max(1, right - left - 1),
    height: SPAN_ROW_PX - 2,
  };
}

/** Kinds differ by lightness and, for what is computed twice, by a pattern. */
export function spanFill(kind: SpanKind, theme: Theme): string {
  const dark = theme === "dark";
  if (kind === "backward") return dark ? "#6a6f78" : "#cfd4da";
  return dark ? "#3f5872" : "#d6e6f7";
}

function paintSpans(context: CanvasRenderingContext2D, paint: StackPaint): void {
  const { spans, theme, selected } = paint;
  const { text, link } = tokens(theme);
  context.font = FONT;
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const span of spans) {
    const rect = spanRect(span, paint);
    if (rect === null) continue;
    context.fillStyle = spanFill(span.kind, theme);
    context.fillRect(rect.x, rect.y, rect.width, rect.height);
    if (span.kind === "recompute") hatch(context, rect, theme);
    if (rect.width >= LABEL_LEAST_PX) {
      context.fillStyle = text;
      clippedText(context, shortName(span.module), rect);
    }
    if (span.module === selected) {
      context.strokeStyle = link;
      context.lineWidth = 2;
      context.strokeRect(rect.x + 1, rect.y + 1, rect.width - 2, rect.height - 2);
    }
  }
}

function hatch(context: CanvasRenderingContext2D, rect: RectPx, theme: Theme): void {
  context.save();
  context.beginPath();
  context.rect(rect.x, rect.y, rect.width, rect.height);
  context.clip();
  context.strokeStyle = tokens(theme).bg;
  context.lineWidth = 2;
  for (let x = rect.x - rect.height; x < rect.x + rect.width; x += 7) {
    stroke(context, [x, rect.y + rect.height, x + rect.height, rect.y]);
  }
  context.restore();
}

/** Text cut to its rectangle, with an ellipsis where some is missing. */
function clippedText(
  context: CanvasRenderingContext2D,
  words: string,
  rect: RectPx,
): void {
  const room = rect.width - 8;
  let shown = words;
  while (shown.length > 1 && context.measureText(shown).width > room) {
    shown = `${shown.replace(/…$/, "").slice(0, -1)}…`;
  }
  if (shown.length > 1 || context.measureText(shown).width <= room) {
    context.fillText(shown, rect.x + 4, rect.y + rect.height / 2 + 0.5);
  }
}

function paintMarks(context: CanvasRenderingContext2D, paint: StackPaint): void {
  const { view, size, theme, marks, moment } = paint;
  const { text, secondary, link } = tokens(theme);
  const bottom = GUTTER.top + size.heightPx;
  context.font = FONT;
  context.textBaseline = "alphabetic";
  for (const mark of marks) {
    if (mark.x < view.x0 || mark.x > view.x1) continue;
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, mark.x)) + 0.5;
    context.strokeStyle = mark.kind === "peak" ? text : secondary;
    context.lineWidth = 1;
    const isPeak = mark.kind === "peak";
    const end = GUTTER.top + yToPx(view, size.heightPx, paint.peakBytes) - 1;
    context.setLineDash(isPeak ? [] : [5, 3]);
    stroke(context, [x, GUTTER.top - 4, x, isPeak ? end : bottom]);
    context.setLineDash([]);
  }
  paintMarkLabels(context, paint);
  if (moment === null || moment < view.x0 || moment > view.x1) return;
  const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, moment)) + 0.5;
  context.strokeStyle = link;
  context.lineWidth = 2;
  stroke(context, [x, GUTTER.top, x, spansTop(size) + spansHeight(paint.spans)]);
}

/** Where two labels would overlap the peak's stands, and the other's line is enough. */
function paintMarkLabels(context: CanvasRenderingContext2D, paint: StackPaint): void {
  const { view, size, theme, marks } = paint;
  const last = GUTTER.left + size.widthPx;
  const taken: { readonly from: number; readonly to: number }[] = [];
  const peakFirst = [...marks].sort(
    (a, b) => Number(b.kind === "peak") - Number(a.kind === "peak"),
  );
  context.fillStyle = tokens(theme).secondary;
  context.textAlign = "left";
  for (const mark of peakFirst) {
    if (mark.x < view.x0 || mark.x > view.x1) continue;
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, mark.x)) + 0.5;
    const width = context.measureText(MARK_LABEL[mark.kind]).width;
    const from = [x + 3, x - 3 - width].find(
      (start) =>
        start >= GUTTER.left &&
        start + width <= last &&
        taken.every((other) => start + width < other.from || start > other.to),
    );
    if (from === undefined || width === 0) continue;
    context.fillText(MARK_LABEL[mark.kind], from, GUTTER.top - 6);
    taken.push({ from: from - 4, to: from + width + 4 });
  }
}

/** The line under the pointer, and the box being drawn. */
export function paintCursor(
  context: CanvasRenderingContext2D,
  paint: StackPaint,
  cursor: number | null,
  box: RectPx | null,
): void {
  const { view, size, theme, spans } = paint;
  const { text, link } = tokens(theme);
  const bottom = spansTop(size) + spansHeight(spans);
  if (cursor !== null && cursor >= view.x0 && cursor <= view.x1) {
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, cursor)) + 0.5;
    context.strokeStyle = text;
    context.lineWidth = 1;
    stroke(context, [x, GUTTER.top, x, bottom]);
  }
  if (box === null) return;
  context.strokeStyle = link;
  context.lineWidth = 1;
  context.strokeRect(GUTTER.left + box.x, GUTTER.top, box.width, size.heightPx);
}
