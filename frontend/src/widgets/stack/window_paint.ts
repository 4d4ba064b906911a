import type { ModuleMark } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";
import { highestColumn } from "../../model/lines/peaks";
import { xToPx, yToPx } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import type { Pen } from "../export/pen";
import { clipTo } from "../plot/axes";
import type { Seen } from "../plot/reader";
import { paintNames, paintStrip, STRIP_ROW_PX, stripTop } from "../plot/strip";
import { numRows, shortName, type Span, type SpanKind } from "./spans";
import type { WindowAnswer } from "./window_stack";

const MARK_LABEL: Readonly<Record<ModuleMark["kind"], string>> = {
  before_optimizer: "optimizer",
  after_optimizer: "",
  peak: "peak",
};

interface WindowLook {
  readonly answer: WindowAnswer;
  readonly spans: readonly Span[];
  readonly theme: Theme;
  /** Fqn of the outlined module. */
  readonly selected: string | null;
  readonly moment: number | null;
}

export function paintWindow(pen: Pen, seen: Seen, look: WindowLook): void {
  const { view, size, left, top } = seen;
  const { spans, theme, selected, moment } = look;
  const { text, secondary, link } = tokens(theme);
  const bottom = stripTop(seen) + numRows(spans) * STRIP_ROW_PX;
  const canvasX = (x: number): number =>
    Math.round(left + xToPx(view, size.widthPx, x)) + 0.5;
  const isSeen = (x: number): boolean => x >= view.x0 && x <= view.x1;
  clipTo(pen, left, 0, size.widthPx, bottom);
  const drawn = spans.map(({ kind, module, row, x0, x1 }) => ({
    ...{ row, x0, x1, label: shortName(module), name: `${module}, ${kind}` },
    colour: spanFill(kind, theme),
    isHatched: kind === "recompute",
    isOutlined: module === selected,
  }));
  paintStrip(pen, seen, drawn, theme);
  const { marks = [], totalBytes } = look.answer;
  const peakY = yToPx(
    view,
    size.heightPx,
    totalBytes[highestColumn(totalBytes)] ?? NaN,
  );
  // Where two labels would overlap, the peak's is drawn.
  const peakFirst = marks
    .filter(({ x }) => isSeen(x))
    .sort((a, b) => Number(b.kind === "peak") - Number(a.kind === "peak"));
  pen.lineWidth = 1;
  for (const { kind, x } of peakFirst) {
    const isPeak = kind === "peak";
    pen.strokeStyle = isPeak ? text : secondary;
    pen.setLineDash(isPeak ? [] : [5, 3]);
    const end = top + (isPeak ? peakY - 1 : size.heightPx);
    strokeLine(pen, canvasX(x), top - 4, canvasX(x), end);
  }
  pen.setLineDash([]);
  const names = peakFirst.map(({ kind, x }) => ({
    ...{ x: canvasX(x), text: MARK_LABEL[kind], colour: secondary },
  }));
  paintNames(pen, seen, names, top - 10, 3);
  if (moment !== null && isSeen(moment)) {
    pen.strokeStyle = link;
    pen.lineWidth = 2;
    strokeLine(pen, canvasX(moment), top, canvasX(moment), bottom);
  }
  pen.restore();
}

/** Kinds differ by lightness, recomputation by a pattern. */
function spanFill(kind: SpanKind, theme: Theme): string {
  const dark = theme === "dark";
  if (kind === "backward") return dark ? "#6a6f78" : "#cfd4da";
  return dark ? "#3f5872" : "#d6e6f7";
}
