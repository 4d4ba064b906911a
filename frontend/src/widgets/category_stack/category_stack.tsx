/**
 * Categories of memory stacked through one window, with the forwards and backwards of
 * modules below: the pointer reads every value, a click chooses the nearest boundary.
 */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { categoryColours, categoryLabel } from "../../model/category";
import { localPeaks, nextPeak } from "../../model/lines/peaks";
import { formatQuantity } from "../../model/words/quantity";
import type { PointPx } from "../../render/gestures";
import { pxToX, xToPx, type SizePx } from "../../render/viewport";
import { paintPointer } from "../plot/axes";
import { highestColumn } from "../plot/bands";
import { Legend } from "../plot/legend";
import { NOTHING_SEEN, PlotFrame, type PlotPainter, type Seen } from "../plot/frame";
import { axisLabel, axisText, WINDOW_BEGAN } from "./axis";
import { stackTable } from "./data_table";
import { columnAt, topOf } from "./layout";
import {
  GUTTER,
  paintStack,
  spansTop,
  SPAN_ROW_PX,
  totalHeight,
  type StackPaint,
} from "./paint";
import {
  boundaries,
  edgesOf,
  nearestBoundary,
  spanAt,
  spansOf,
  type Boundary,
  type Span,
} from "./spans";
import { spanWords, StackTip } from "./tooltip";
import type { CategoryStackProps } from "./types";

/** The least that can be zoomed into, as a share of the window. */
const LEAST_SHARE = 1e-4;

/** What is under the pointer. */
interface Hover {
  readonly at: PointPx;
  readonly x: number;
  readonly span: Span | null;
  readonly boundary: Boundary | null;
}

interface Look extends Omit<StackPaint, "view" | "size"> {
  readonly hover: ReadonlySignal<Hover | null>;
}

const PAINTER: PlotPainter<Look> = {
  frame: (pen, look, seen) => paintStack(pen, { ...look, ...seen }),
  over: (pen, { hover, theme, spans }, { view, size }, box) => {
    const x = hover.value?.x ?? NaN;
    const { heightPx } = size;
    const bottom = totalHeight(heightPx, spans) - 4;
    const at = GUTTER.left + xToPx(view, size.widthPx, x);
    const line =
      x >= view.x0 && x <= view.x1 ? { x: at, top: GUTTER.top, bottom } : null;
    paintPointer(pen, theme, line, box);
  },
};

export function CategoryStack(props: CategoryStackProps) {
  const { answer, theme, byteUnit, plotPx, selected, moment } = props;
  const { began = WINDOW_BEGAN } = props;
  const hover = useSignal<Hover | null>(null);
  const spoken = useSignal("");
  const seen = useRef<Seen>(NOTHING_SEEN);
  const colours = useMemo(
    () => categoryColours(theme, answer.categories),
    [theme, answer.categories],
  );
  const spans = useMemo(() => spansOf(answer.spans), [answer.spans]);
  const all = useMemo(() => boundaries(spans, answer.marks), [spans, answer.marks]);
  const low = props.range?.low ?? answer.xLow;
  const high = props.range?.high ?? answer.xHigh;
  const top = useMemo(() => topOf(answer, low, high), [answer, low, high]);
  const look = useMemo<Look>(
    () => ({
      answer,
      colours,
      hover,
      spans,
      theme,
      byteUnit,
      selected,
      moment,
    }),
    [answer, colours, hover, spans, theme, byteUnit, selected, moment],
  );

  function hovered(at: PointPx): Hover {
    const { view, size } = seen.current;
    const x = pxToX(view, size.widthPx, Math.min(Math.max(at.x, 0), size.widthPx));
    const below = at.y - (spansTop(size) - GUTTER.top);
    const row = below < 0 ? null : Math.floor(below / SPAN_ROW_PX);
    const span = spanAt(spans, x, row);
    const near = row !== null && span !== null ? edgesOf(span) : all;
    return { at, x, span, boundary: nearestBoundary(near, x) };
  }

  /** Puts the cursor at x, as the pointer would, and says what stands there. */
  function moveTo(x: number): void {
    const { view, size } = seen.current;
    const at = {
      x: ((x - view.x0) / (view.x1 - view.x0)) * size.widthPx,
      y: size.heightPx / 2,
    };
    const found = { ...hovered(at), x, boundary: nearestBoundary(all, x) };
    hover.value = found;
    const total = answer.totalBytes[columnAt(answer, x)] ?? NaN;
    const words = [
      axisText(x, answer.axis, began),
      formatQuantity(total, "bytes", byteUnit),
    ];
    if (found.span !== null) words.push(spanWords(found.span));
    if (found.boundary !== null) words.push(props.boundaryWords(found.boundary));
    spoken.value = words.join(", ");
  }
  function step(columns: number): void {
    const { xPerColumn } = answer;
    const { view } = seen.current;
    const from = hover.peek()?.x ?? (view.x0 + view.x1) / 2;
    const x = Math.min(Math.max(from + columns * xPerColumn, view.x0), view.x1);
    moveTo(x);
  }
  function stepBoundary(side: -1 | 1): void {
    const { view } = seen.current;
    const from = hover.peek()?.x ?? (side > 0 ? view.x0 - 1 : view.x1 + 1);
    const next =
      side > 0 ? all.find(({ x }) => x > from) : all.findLast(({ x }) => x < from);
    if (next !== undefined) moveTo(next.x);
  }
  function toPeak(): void {
    const column = highestColumn(answer.totalBytes);
    const x = answer.peakX[column];
    if (x !== undefined) moveTo(x);
  }

  function toNextPeak(side: -1 | 1): boolean {
    const { view } = seen.current;
    const peaks = localPeaks({ x: answer.peakX, y: answer.totalBytes });
    const from = hover.peek()?.x ?? (side > 0 ? view.x0 - 1 : view.x1 + 1);
    const next = nextPeak(peaks, from, side);
    if (next !== null) moveTo(next);
    return next !== null;
  }
  if (props.handle !== undefined) props.handle.current = { toPeak, toNextPeak };

  function onKey(event: KeyboardEvent): boolean {
    const far = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowRight") step(far);
    else if (event.key === "ArrowLeft") step(-far);
    else if (event.key === "ArrowDown") stepBoundary(1);
    else if (event.key === "ArrowUp") stepBoundary(-1);
    else if (event.key === "p" || event.key === "P") toPeak();
    else if (event.key === "[") toNextPeak(-1);
    else if (event.key === "]") toNextPeak(1);
    else if (event.key === "Escape") hover.value = null;
    else if (event.key === "Enter") {
      const found = hover.peek()?.boundary ?? null;
      if (found !== null) props.onPick(found);
    } else return false;
    return true;
  }

  const legend = answer.categories.map(({ name }, i) => ({
    label: categoryLabel(name),
    colour: colours[i] ?? "transparent",
  }));
  return (
    <PlotFrame
      kind="stack"
      label={props.label}
      axisName={axisLabel(answer.axis, began)}
      subject="the stacked categories"
      look={look}
      painter={PAINTER}
      extent={{ low: answer.xLow, high: answer.xHigh }}
      range={props.range}
      onRange={props.onRange}
      leastX={Math.max((answer.xHigh - answer.xLow) * LEAST_SHARE, 1e-6)}
      y0={top}
      gutter={GUTTER}
      plotPx={plotPx}
      totalPx={totalHeight(plotPx, spans)}
      seen={seen}
      onHover={(at) => {
        hover.value = at === null ? null : hovered(at);
      }}
      onClick={(at) => {
        const { boundary } = hovered(at);
        if (boundary !== null) props.onPick(boundary);
      }}
      onKey={onKey}
      table={(view) => stackTable(answer, view)}
      origin={props.origin}
      about={() => ({ ...props.about, axis: answer.axis, marks: answer.marks })}
      names={legend}
      exporter={props.exporter}
      tip={({ size }) => (
        <Hovering hover={hover} props={props} colours={colours} size={size} />
      )}
      legend={
        <Legend items={legend}>
          {answer.spans.numLeftOut > 0 && (
            <li class="quiet">
              Modules too narrow to see are left out; zoom in for them.
            </li>
          )}
        </Legend>
      }
      help="Left and right read values, up and down go from boundary to boundary, Enter shows the boundary in the table, P goes to the peak, W and S zoom, A and D pan, F shows everything."
      spoken={spoken}
    />
  );
}

function Hovering(own: {
  readonly hover: ReadonlySignal<Hover | null>;
  readonly props: CategoryStackProps;
  readonly colours: readonly string[];
  readonly size: SizePx;
}) {
  const found = own.hover.value;
  if (found === null) return null;
  const { answer, byteUnit, boundaryWords, began = WINDOW_BEGAN } = own.props;
  return (
    <StackTip
      answer={answer}
      began={began}
      colours={own.colours}
      column={columnAt(answer, found.x)}
      x={found.x}
      span={found.span}
      boundary={found.boundary}
      boundaryWords={boundaryWords}
      byteUnit={byteUnit}
      at={{
        leftPx: GUTTER.left + found.at.x,
        topPx: GUTTER.top + 4,
        flip: found.at.x > own.size.widthPx / 2,
      }}
    />
  );
}
