/** A click chooses the nearest boundary. */

import { useCallback, useMemo } from "preact/hooks";
import type { ModuleTimelineResponse, ModuleMark } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import { type Theme, tokens } from "../../base/tokens";
import { categoryColours, categoryLabel } from "../../model/category";
import { valueTicks, type XAxis } from "../../model/lines/axis";
import { highestColumn } from "../../model/lines/peaks";
import { formatExact } from "../../model/words/quantity";
import type { PointPx } from "../../render/gestures";
import { xToPx, yToPx } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import type { Pen } from "../export/pen";
import { AXIS_PX, clipTo } from "../plot/axes";
import type { PlotProps } from "../plot/plot";
import type { PlotSight } from "../plot/reader";
import { STRIP_ROW_PX, paintNames, paintStrip, stripTop } from "../plot/strip";
import {
  boundaries,
  edgesOf,
  nearestBoundary,
  numRows,
  spanAt,
  spansOf,
  spanWords,
  type Boundary,
  shortName,
  type Span,
  type SpanKind,
} from "./spans";
import { Stack, type StackData } from "./stack";

/** Without modules: categories over time only. */
export type WindowAnswer = Pick<
  ModuleTimelineResponse,
  "categories" | "peakX" | "totalBytes" | "x0" | "xHigh" | "xLow" | "xPerColumn"
> &
  Partial<Pick<ModuleTimelineResponse, "axis" | "marks" | "spans">>;

const NO_MARKS: ModuleTimelineResponse["marks"] = [];

/** Smallest zoom, as a share of the window. */
const LEAST_SHARE = 1e-4;
const TOP_PX = 16;
const US_PER_S = 1e6;
const LOOK = { edgedPx: 4, linedPx: 0, apartPx: Infinity };

interface WindowStackProps extends Pick<
  PlotProps,
  "label" | "onRange" | "origin" | "page" | "plotPx" | "range"
> {
  readonly answer: WindowAnswer;
  readonly began?: string;
  /** Fqn of the outlined module. */
  readonly selected?: string | null;
  /** The moment of the table, in units of the axis. */
  readonly moment?: number | null;
  readonly onPick?: (boundary: Boundary) => void;
  /** Its name in the table: "after post-forward of Net". */
  readonly boundaryWords?: (boundary: Boundary) => string;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly about: Readonly<Record<string, unknown>>;
}

export function WindowStack(props: WindowStackProps) {
  const { answer, theme, selected = null, moment = null, boundaryWords } = props;
  const { began = "tracking began" } = props;
  const data = useMemo(() => stackOf(answer, theme), [answer, theme]);
  const { marks = NO_MARKS, spans: moduleSpans } = answer;
  const spans = useMemo(
    () => (moduleSpans === undefined ? [] : spansOf(moduleSpans)),
    [moduleSpans],
  );
  const all = useMemo(() => boundaries(spans, marks), [spans, marks]);
  const axis = useMemo(() => windowAxis(answer, began), [answer, began]);
  const over = useCallback(
    (pen: Pen, seen: PlotSight) =>
      paintWindow(pen, seen, { answer, spans, theme, selected, moment }),
    [answer, spans, theme, selected, moment],
  );

  /** y is NaN where keys moved the cursor. */
  function meant(x: number, { y }: PointPx) {
    const below = y - (props.plotPx + AXIS_PX);
    const row = below >= 0 ? Math.floor(below / STRIP_ROW_PX) : null;
    const span = spanAt(spans, x, row);
    const near = row !== null && span !== null ? edgesOf(span) : all;
    return { span, boundary: nearestBoundary(near, x) };
  }
  return (
    <>
      <Stack
        kind="stack"
        {...props}
        theme={theme}
        axis={axis}
        data={data}
        over={over}
        extent={{ low: answer.xLow, high: answer.xHigh }}
        unit="bytes"
        subject="the stacked categories"
        total="total"
        exact={(value) => formatExact(value, "bytes")}
        topPx={TOP_PX}
        stripPx={numRows(spans) * STRIP_ROW_PX + 4}
        look={LOOK}
        isFree
        stops={all.map(({ x }) => x)}
        reading={(x, point) => {
          const { span, boundary } = meant(x, point);
          const click = boundary && boundaryWords?.(boundary);
          const text = `Click: ${click ?? ""}`;
          return {
            title: axis.text(x),
            notes: span === null ? [] : [spanWords(span)],
            foot: click ? [{ text, class: "quiet" }] : [],
          };
        }}
        pick={(x, point) => {
          const { boundary } = meant(x, point);
          if (boundary !== null) props.onPick?.(boundary);
        }}
        about={() => ({ ...props.about, axis: answer.axis, marks })}
        help="Left and right read values, up and down go from boundary to boundary, Enter shows the boundary in the table, P goes to the peak, W and S zoom, A and D pan, F shows everything."
      />
      {moduleSpans !== undefined && moduleSpans.numLeftOut > 0 && (
        <p class="quiet">
          Modules too narrow to see are left out; zoom in to see them.
        </p>
      )}
    </>
  );
}

/** Columns of equal width, read where they are highest. */
export function stackOf(answer: WindowAnswer, theme: Theme): StackData {
  const { categories, x0, xPerColumn, totalBytes, peakX } = answer;
  const colours = categoryColours(theme, categories);
  return {
    edges: Array.from({ length: totalBytes.length + 1 }, (_, c) => x0 + c * xPerColumn),
    columnX: peakX,
    totals: totalBytes,
    layers: categories.map(({ name, bytes }, i) => ({
      name,
      label: categoryLabel(name),
      colour: colours[i] ?? "transparent",
      values: bytes,
    })),
  };
}

function windowAxis({ axis, xLow, xHigh }: WindowAnswer, began: string): XAxis {
  const least = Math.max((xHigh - xLow) * LEAST_SHARE, 1e-6);
  if (axis === "event") {
    return {
      name: `allocations and frees since ${began}`,
      column: "event",
      least,
      ticks: (low, high, most) => valueTicks(low, high, most, "count"),
      text: (x) => `event ${formatInteger(Math.round(x))}`,
    };
  }
  return {
    name: `time since ${began}`,
    column: "time_us",
    least,
    ticks: (low, high, most) =>
      valueTicks(low / US_PER_S, high / US_PER_S, most, "seconds").map((tick) => ({
        ...tick,
        value: tick.value * US_PER_S,
      })),
    text: (x) => `${formatSeconds(x / US_PER_S)} after ${began}`,
  };
}

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

export function paintWindow(pen: Pen, seen: PlotSight, look: WindowLook): void {
  const { view, size, left, top } = seen;
  const { spans, theme, selected, moment } = look;
  const { text, secondary, link } = tokens(theme);
  const bottom = stripTop(seen) + numRows(spans) * STRIP_ROW_PX;
  const canvasX = (x: number): number =>
    Math.round(left + xToPx(view, size.widthPx, x)) + 0.5;
  const isSeen = (x: number): boolean => x >= view.x0 && x <= view.x1;
  clipTo(pen, left, 0, size.widthPx, bottom);
  const drawn = spans.map(({ kind, module, row, x0, x1 }) => ({
    row,
    x0,
    x1,
    label: shortName(module),
    name: `${module}, ${kind}`,
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
    x: canvasX(x),
    text: MARK_LABEL[kind],
    colour: secondary,
  }));
  if (moment !== null && isSeen(moment)) {
    pen.strokeStyle = link;
    pen.lineWidth = 2;
    strokeLine(pen, canvasX(moment), top, canvasX(moment), bottom);
  }
  pen.restore();
  paintNames(pen, seen, names, top - 10, 3);
}

/** Kinds differ by lightness, recomputation by a pattern. */
function spanFill(kind: SpanKind, theme: Theme): string {
  const dark = theme === "dark";
  if (kind === "backward") return dark ? "#6a6f78" : "#cfd4da";
  return dark ? "#3f5872" : "#d6e6f7";
}
