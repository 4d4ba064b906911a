/** The stacked categories with axes, spans and marks, on a canvas or in a picture. */

import type { ModuleMark } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import type { RectPx, SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import { AXIS_PX, clipTo, SIDES } from "../plot/axes";
import { highestColumn, paintStacked } from "../plot/bands";
import { fitting } from "../plot/text";
import { axisTicks } from "./axis";
import { bandsOf } from "./layout";
import { numRows, shortName, type Span, type SpanKind } from "./spans";
import type { StackAnswer } from "./types";

export const GUTTER = { ...SIDES, top: 16 } as const;
export const SPAN_ROW_PX = 16;

const LABEL_LEAST_PX = 22;
const BAND_LOOK = { edgedPx: 4, linedPx: 0, apartPx: Infinity };

const MARK_LABEL: Readonly<Record<ModuleMark["kind"], string>> = {
  before_optimizer: "optimizer",
  after_optimizer: "",
  peak: "peak",
};

export interface StackPaint {
  readonly view: Viewport;
  readonly size: SizePx;
  readonly answer: StackAnswer;
  readonly colours: readonly string[];
  readonly spans: readonly Span[];
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

/** With all that lies around the plot. */
export function totalHeight(plotPx: number, spans: readonly Span[]): number {
  return spansTop({ widthPx: 1, heightPx: plotPx }) + spansHeight(spans) + 4;
}

export function paintStack(pen: Pen, paint: StackPaint): void {
  const { answer, view, size, theme, byteUnit, colours, spans } = paint;
  const { left, top } = GUTTER;
  const most = Math.max(2, Math.floor(size.heightPx / 36));
  const stack = {
    ...bandsOf(answer),
    ...{ left, top, size, theme },
    x: axisTicks(view.x0, view.x1, size.widthPx, answer.axis),
    y: valueTicks(0, view.y0, most, "bytes", byteUnit),
  };
  paintStacked(pen, stack, { ...BAND_LOOK, colours }, view);
  clipTo(pen, left, 0, size.widthPx, spansTop(size) + spansHeight(spans));
  paintSpans(pen, paint);
  paintMarks(pen, paint);
  pen.restore();
}

/** The rectangle of a span in px of the canvas; null where it is out of sight. */
function spanRect(span: Span, paint: StackPaint): RectPx | null {
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

function paintSpans(pen: Pen, paint: StackPaint): void {
  const { spans, theme, selected } = paint;
  const { text, link } = tokens(theme);
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  const widthOf = (words: string): number => pen.measureText(words).width;
  for (const span of spans) {
    const rect = spanRect(span, paint);
    if (rect === null) continue;
    pen.fillStyle = spanFill(span.kind, theme);
    pen.name?.(`${span.module}, ${span.kind}`);
    pen.fillRect(rect.x, rect.y, rect.width, rect.height);
    if (span.kind === "recompute") hatch(pen, rect, theme);
    if (rect.width >= LABEL_LEAST_PX) {
      pen.fillStyle = text;
      const words = fitting(shortName(span.module), rect.width - 8, widthOf);
      pen.fillText(words, rect.x + 4, rect.y + rect.height / 2 + 0.5);
    }
    if (span.module === selected) {
      pen.strokeStyle = link;
      pen.lineWidth = 2;
      pen.strokeRect(rect.x + 1, rect.y + 1, rect.width - 2, rect.height - 2);
    }
  }
}

function hatch(pen: Pen, rect: RectPx, theme: Theme): void {
  clipTo(pen, rect.x, rect.y, rect.width, rect.height);
  pen.strokeStyle = tokens(theme).bg;
  pen.lineWidth = 2;
  for (let x = rect.x - rect.height; x < rect.x + rect.width; x += 7) {
    strokeLine(pen, x, rect.y + rect.height, x + rect.height, rect.y);
  }
  pen.restore();
}

function paintMarks(pen: Pen, paint: StackPaint): void {
  const { view, size, theme, moment, answer } = paint;
  const { text, secondary, link } = tokens(theme);
  const bottom = GUTTER.top + size.heightPx;
  pen.font = FONT;
  pen.textBaseline = "alphabetic";
  const peakBytes = answer.totalBytes[highestColumn(answer.totalBytes)] ?? NaN;
  for (const mark of answer.marks) {
    if (mark.x < view.x0 || mark.x > view.x1) continue;
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, mark.x)) + 0.5;
    pen.strokeStyle = mark.kind === "peak" ? text : secondary;
    pen.lineWidth = 1;
    const isPeak = mark.kind === "peak";
    const end = GUTTER.top + yToPx(view, size.heightPx, peakBytes) - 1;
    pen.setLineDash(isPeak ? [] : [5, 3]);
    strokeLine(pen, x, GUTTER.top - 4, x, isPeak ? end : bottom);
    pen.setLineDash([]);
  }
  paintMarkLabels(pen, paint);
  if (moment === null || moment < view.x0 || moment > view.x1) return;
  const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, moment)) + 0.5;
  pen.strokeStyle = link;
  pen.lineWidth = 2;
  strokeLine(pen, x, GUTTER.top, x, spansTop(size) + spansHeight(paint.spans));
}

/** Where two labels would overlap the peak's stands, and the other's line is enough. */
function paintMarkLabels(pen: Pen, paint: StackPaint): void {
  const { view, size, theme, answer } = paint;
  const last = GUTTER.left + size.widthPx;
  const taken: { readonly from: number; readonly to: number }[] = [];
  const peakFirst = [...answer.marks].sort(
    (a, b) => Number(b.kind === "peak") - Number(a.kind === "peak"),
  );
  pen.fillStyle = tokens(theme).secondary;
  pen.textAlign = "left";
  for (const mark of peakFirst) {
    if (mark.x < view.x0 || mark.x > view.x1) continue;
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, mark.x)) + 0.5;
    const width = pen.measureText(MARK_LABEL[mark.kind]).width;
    const from = [x + 3, x - 3 - width].find(
      (start) =>
        start >= GUTTER.left &&
        start + width <= last &&
        taken.every((other) => start + width < other.from || start > other.to),
    );
    if (from === undefined || width === 0) continue;
    pen.fillText(MARK_LABEL[mark.kind], from, GUTTER.top - 6);
    taken.push({ from: from - 4, to: from + width + 4 });
  }
}
