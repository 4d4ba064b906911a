/** Modules' spans below the stacked categories, and the marks over them. */

import type { ModuleMark } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";
import { highestColumn } from "../../model/lines/peaks";
import type { RectPx } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import { AXIS_PX, clipTo } from "../plot/axes";
import type { Seen } from "../plot/reader";
import { fitting } from "../plot/text";
import { numRows, shortName, type Span, type SpanKind } from "./spans";
import type { WindowAnswer } from "./window_stack";

export const SPAN_ROW_PX = 16;

const LABEL_LEAST_PX = 22;

const MARK_LABEL: Readonly<Record<ModuleMark["kind"], string>> = {
  before_optimizer: "optimizer",
  after_optimizer: "",
  peak: "peak",
};

interface WindowLook {
  readonly answer: WindowAnswer;
  readonly spans: readonly Span[];
  readonly theme: Theme;
  /** Fqn of the module whose spans are outlined. */
  readonly selected: string | null;
  /** The moment that the table shows. */
  readonly moment: number | null;
}

export function paintWindow(pen: Pen, seen: Seen, look: WindowLook): void {
  const { left, top, size } = seen;
  const strip = AXIS_PX + numRows(look.spans) * SPAN_ROW_PX;
  clipTo(pen, left, 0, size.widthPx, top + size.heightPx + strip);
  paintSpans(pen, seen, look);
  paintMarks(pen, seen, look);
  paintMarkLabels(pen, seen, look);
  paintLine(pen, seen, look, strip);
  pen.restore();
}

/** The rectangle of a span in px of the canvas; null where it is out of sight. */
function spanRect(span: Span, { view, size, left, top }: Seen): RectPx | null {
  if (span.x1 < view.x0 || span.x0 > view.x1) return null;
  const from = Math.max(-2, xToPx(view, size.widthPx, span.x0));
  const to = Math.min(size.widthPx + 2, xToPx(view, size.widthPx, span.x1));
  return {
    x: left + from,
    y: top + size.heightPx + AXIS_PX + span.row * SPAN_ROW_PX,
    width: Math.max(1, to - from - 1),
    height: SPAN_ROW_PX - 2,
  };
}

/** Kinds differ by lightness and, for what is computed twice, by a pattern. */
function spanFill(kind: SpanKind, theme: Theme): string {
  const dark = theme === "dark";
  if (kind === "backward") return dark ? "#6a6f78" : "#cfd4da";
  return dark ? "#3f5872" : "#d6e6f7";
}

function paintSpans(pen: Pen, seen: Seen, look: WindowLook): void {
  const { spans, theme, selected } = look;
  const { text, link } = tokens(theme);
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  const widthOf = (words: string): number => pen.measureText(words).width;
  for (const span of spans) {
    const rect = spanRect(span, seen);
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

/** Marks in sight, with where they stand on the canvas. */
function marksIn({ view, size, left }: Seen, { answer }: WindowLook) {
  return answer.marks
    .filter(({ x }) => x >= view.x0 && x <= view.x1)
    .map(({ kind, x }) => ({
      kind,
      x: Math.round(left + xToPx(view, size.widthPx, x)) + 0.5,
    }));
}

function paintMarks(pen: Pen, seen: Seen, look: WindowLook): void {
  const { view, size, top } = seen;
  const { text, secondary } = tokens(look.theme);
  const { totalBytes } = look.answer;
  const peakBytes = totalBytes[highestColumn(totalBytes)] ?? NaN;
  pen.lineWidth = 1;
  for (const { kind, x } of marksIn(seen, look)) {
    const isPeak = kind === "peak";
    const end = isPeak ? yToPx(view, size.heightPx, peakBytes) - 1 : size.heightPx;
    pen.strokeStyle = isPeak ? text : secondary;
    pen.setLineDash(isPeak ? [] : [5, 3]);
    strokeLine(pen, x, top - 4, x, top + end);
    pen.setLineDash([]);
  }
}

/** The moment that the table shows. */
function paintLine(pen: Pen, seen: Seen, look: WindowLook, stripPx: number): void {
  const { view, size, left, top } = seen;
  const { moment, theme } = look;
  if (moment === null || moment < view.x0 || moment > view.x1) return;
  const x = Math.round(left + xToPx(view, size.widthPx, moment)) + 0.5;
  pen.strokeStyle = tokens(theme).link;
  pen.lineWidth = 2;
  strokeLine(pen, x, top, x, top + size.heightPx + stripPx);
}

/** Where two labels would overlap the peak's stands, and the other's line is enough. */
function paintMarkLabels(pen: Pen, seen: Seen, look: WindowLook): void {
  const { size, left, top } = seen;
  const taken: { readonly from: number; readonly to: number }[] = [];
  const peakFirst = [...marksIn(seen, look)].sort(
    (a, b) => Number(b.kind === "peak") - Number(a.kind === "peak"),
  );
  pen.font = FONT;
  pen.fillStyle = tokens(look.theme).secondary;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  for (const { kind, x } of peakFirst) {
    const width = pen.measureText(MARK_LABEL[kind]).width;
    const from = [x + 3, x - 3 - width].find(
      (start) =>
        start >= left &&
        start + width <= left + size.widthPx &&
        taken.every((other) => start + width < other.from || start > other.to),
    );
    if (from === undefined || width === 0) continue;
    pen.fillText(MARK_LABEL[kind], from, top - 6);
    taken.push({ from: from - 4, to: from + width + 4 });
  }
}
