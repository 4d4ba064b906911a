/**
 * Categories of memory stacked through one window, with the forwards and backwards of
 * modules below: the pointer reads every value, a click chooses the nearest boundary.
 */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import {
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "preact/hooks";
import { formatQuantity } from "../../model/quantity";
import { categoryColours, categoryLabel } from "../../model/category";
import { localPeaks, nextPeak } from "../../model/peaks";
import { figureTitle } from "../../model/origin";
import {
  attachGestures,
  viewAfterKey,
  zoomStep,
  type PointPx,
} from "../../render/gestures";
import {
  pxToX,
  type Limits,
  type RectPx,
  type SizePx,
  type Viewport,
} from "../../render/viewport";
import { DataTable } from "../export/data_table";
import { ExportMenu } from "../export/export_menu";
import type { ExportSource } from "../export/source";
import { ChartButton } from "../line_chart/chart_button";
import { useWidth } from "../line_chart/use_size";
import { ZoomButtons } from "../line_chart/zoom_buttons";
import { AXIS_LABEL, axisText } from "./axis";
import { drawCells, fitted } from "./canvas";
import "./category_stack.css";
import { stackFigure, stackTable } from "./figure";
import { columnAt, peakColumn, topOf } from "./layout";
import {
  GUTTER,
  paintCursor,
  paintFrame,
  spansHeight,
  spansTop,
  SPAN_ROW_PX,
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

export function CategoryStack(props: CategoryStackProps) {
  const { answer, theme, byteUnit, plotPx, selected, moment } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const widthPx = useWidth(box);
  const [asTable, setAsTable] = useState(false);
  const hover = useSignal<Hover | null>(null);
  const drawing = useSignal<RectPx | null>(null);
  const spoken = useSignal("");
  const helpId = useId();
  const colours = useMemo(
    () => categoryColours(theme, answer.categories),
    [theme, answer.categories],
  );
  const spans = useMemo(() => spansOf(answer.spans), [answer.spans]);
  const all = useMemo(() => boundaries(spans, answer.marks), [spans, answer.marks]);
  const size = useMemo<SizePx>(
    () => ({
      widthPx: Math.max(1, widthPx - GUTTER.left - GUTTER.right),
      heightPx: plotPx,
    }),
    [widthPx, plotPx],
  );
  const low = props.range?.low ?? answer.xLow;
  const high = props.range?.high ?? answer.xHigh;
  const view = useMemo<Viewport>(
    () => ({
      x0: low,
      x1: high > low ? high : low + 1,
      y0: topOf(answer, low, high),
      y1: 0,
    }),
    [answer, low, high],
  );
  const paint = useMemo<StackPaint>(
    () => ({
      view,
      size,
      axis: answer.axis,
      spans,
      marks: answer.marks,
      peakBytes: answer.totalBytes[peakColumn(answer)] ?? NaN,
      theme,
      byteUnit,
      selected,
      moment,
    }),
    [view, size, answer, spans, theme, byteUnit, selected, moment],
  );
  const totalPx = spansTop(size) + spansHeight(spans) + 4;
  const latest = useRef({ props, view, size, all, paint });
  latest.current = { props, view, size, all, paint };

  useLayoutEffect(() => {
    if (widthPx === 0 || asTable) return;
    drawCells(cells.current, paint, answer, colours);
    const context = fitted(frame.current, widthPx, totalPx);
    if (context !== null) paintFrame(context, paint);
  }, [paint, colours, answer, widthPx, totalPx, asTable]);
  useEffect(() => {
    if (widthPx === 0 || asTable) return undefined;
    const redraw = (): void => {
      const context = fitted(over.current, widthPx, totalPx);
      if (context === null) return;
      const x = hover.value?.x ?? null;
      paintCursor(context, latest.current.paint, x, drawing.value);
    };
    const stops = [hover.subscribe(redraw), drawing.subscribe(redraw)];
    return () => {
      for (const stop of stops) stop();
    };
  }, [paint, widthPx, totalPx, asTable]);

  function limits(): Limits {
    const { xLow, xHigh } = latest.current.props.answer;
    const x1 = xHigh > xLow ? xHigh : xLow + 1;
    return {
      world: { x0: xLow, x1, y0: 0, y1: 1 },
      leastX: Math.max((x1 - xLow) * LEAST_SHARE, 1e-6),
      leastY: 1,
    };
  }
  function flat(): Viewport {
    const { x0, x1 } = latest.current.view;
    return { x0, x1, y0: 0, y1: 1 };
  }
  function setView(next: Viewport): void {
    const { xLow, xHigh } = latest.current.props.answer;
    const whole = next.x0 <= xLow && next.x1 >= xHigh;
    latest.current.props.onRange(whole ? null : { low: next.x0, high: next.x1 });
  }
  function fit(): void {
    latest.current.props.onRange(null);
  }
  function hovered(at: PointPx): Hover {
    const { view: seen, size: px, all: known, paint: drawn } = latest.current;
    const x = pxToX(seen, px.widthPx, Math.min(Math.max(at.x, 0), px.widthPx));
    const below = at.y - (spansTop(px) - GUTTER.top);
    const row = below < 0 ? null : Math.floor(below / SPAN_ROW_PX);
    const span = spanAt(drawn.spans, x, row);
    const near = row !== null && span !== null ? edgesOf(span) : known;
    return { at, x, span, boundary: nearestBoundary(near, x) };
  }

  const ready = widthPx > 0 && !asTable;
  useEffect(() => {
    const target = plot.current;
    if (!ready || target === null) return undefined;
    return attachGestures(target, {
      origin: { x: GUTTER.left, y: GUTTER.top },
      size: () => latest.current.size,
      view: flat,
      limits,
      wheelAxes: () => "x",
      dragAxes: "x",
      onView: setView,
      onFit: fit,
      onBox: (rect) => {
        drawing.value = rect;
      },
      onBoxDone: (next, rect) => {
        if (rect.width >= 4) setView({ ...next, y0: 0, y1: 1 });
      },
      onHover: (at) => {
        hover.value = at === null ? null : hovered(at);
      },
      onClick: (at) => {
        plot.current?.focus({ preventScroll: true });
        const { boundary } = hovered(at);
        if (boundary !== null) latest.current.props.onPick(boundary);
      },
    });
  }, [ready]);

  /** Puts the cursor at x, as the pointer would, and says what stands there. */
  function moveTo(x: number): void {
    const { view: seen, size: px } = latest.current;
    const at = {
      x: ((x - seen.x0) / (seen.x1 - seen.x0)) * px.widthPx,
      y: px.heightPx / 2,
    };
    const found = { ...hovered(at), x, boundary: nearestBoundary(all, x) };
    hover.value = found;
    const total = answer.totalBytes[columnAt(answer, x)] ?? NaN;
    const words = [axisText(x, answer.axis), formatQuantity(total, "bytes", byteUnit)];
    if (found.span !== null) words.push(spanWords(found.span));
    if (found.boundary !== null) words.push(props.boundaryWords(found.boundary));
    spoken.value = words.join(", ");
  }
  function step(columns: number): void {
    const { xPerColumn } = answer;
    const from = hover.peek()?.x ?? (view.x0 + view.x1) / 2;
    const x = Math.min(Math.max(from + columns * xPerColumn, view.x0), view.x1);
    moveTo(x);
  }
  function stepBoundary(side: -1 | 1): void {
    const from = hover.peek()?.x ?? (side > 0 ? view.x0 - 1 : view.x1 + 1);
    const next =
      side > 0 ? all.find(({ x }) => x > from) : all.findLast(({ x }) => x < from);
    if (next !== undefined) moveTo(next.x);
  }
  function toPeak(): void {
    const column = peakColumn(answer);
    const x = answer.peakX[column];
    if (x !== undefined) moveTo(x);
  }

  function toNextPeak(side: -1 | 1): boolean {
    const peaks = localPeaks({ x: answer.peakX, y: answer.totalBytes });
    const from = hover.peek()?.x ?? (side > 0 ? view.x0 - 1 : view.x1 + 1);
    const next = nextPeak(peaks, from, side);
    if (next !== null) moveTo(next);
    return next !== null;
  }
  if (props.handle !== undefined) props.handle.current = { toPeak, toNextPeak };

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const far = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowRight") step(far);
    else if (event.key === "ArrowLeft") step(-far);
    else if (event.key === "ArrowDown") stepBoundary(1);
    else if (event.key === "ArrowUp") stepBoundary(-1);
    else if (event.key === "p" || event.key === "P") toPeak();
    else if (event.key === "[") toNextPeak(-1);
    else if (event.key === "]") toNextPeak(1);
    else if (event.key === "f" || event.key === "F") fit();
    else if (event.key === "Escape") hover.value = null;
    else if (event.key === "Enter") {
      const found = hover.peek()?.boundary ?? null;
      if (found !== null) props.onPick(found);
    } else {
      const next = viewAfterKey(event.key, flat(), limits(), "x");
      if (next === null) return;
      setView(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  const source: ExportSource = {
    origin: props.origin,
    name: props.label,
    table: () => stackTable(answer, view),
    about: () => ({ ...props.about, axis: answer.axis, marks: answer.marks }),
    figure: () => {
      const title = figureTitle(props.label, props.origin);
      return stackFigure({ title, answer, colours, view, size, theme, byteUnit });
    },
  };
  if (props.exporter !== undefined) props.exporter.current = source;

  return (
    <figure class="chart stack">
      <div class="chart-bar">
        <figcaption>{props.label}</figcaption>
        <span class="chart-axis-name">{AXIS_LABEL[answer.axis]}</span>
        <ZoomButtons
          zoom={(sign) => {
            setView(zoomStep(flat(), limits(), sign, "x"));
          }}
          fit={fit}
        />
        <ChartButton
          label={asTable ? "View as chart" : "View as table"}
          icon={asTable ? "chart" : "table"}
          onClick={() => {
            setAsTable(!asTable);
          }}
        />
        <ExportMenu subject="the stacked categories" source={source} />
      </div>
      <div ref={box}>
        {asTable ? (
          <DataTable
            label={props.label}
            heightPx={totalPx}
            table={stackTable(answer, view)}
          />
        ) : (
          <div
            ref={plot}
            class="chart-plot stack-plot"
            style={{ height: `${totalPx}px` }}
            tabIndex={0}
            role="application"
            aria-label={props.label}
            aria-describedby={helpId}
            onKeyDown={onKeyDown}
          >
            <canvas
              ref={cells}
              style={{ left: `${GUTTER.left}px`, top: `${GUTTER.top}px` }}
            />
            <canvas ref={frame} />
            <canvas ref={over} />
            <Hovering hover={hover} props={props} colours={colours} size={size} />
          </div>
        )}
      </div>
      <ul class="stack-legend">
        {answer.categories.map(({ name }, i) => (
          <li key={name}>
            <span
              class="column-swatch"
              style={{ background: colours[i] ?? "transparent" }}
            />
            {categoryLabel(name)}
          </li>
        ))}
        {answer.spans.numLeftOut > 0 && (
          <li class="quiet">
            Modules too narrow to see are left out; zoom in for them.
          </li>
        )}
      </ul>
      <p id={helpId} class="off-screen">
        Left and right read values, up and down go from boundary to boundary, Enter
        shows the boundary in the table, P goes to the peak, W and S zoom, A and D pan,
        F shows everything.
      </p>
      <p class="off-screen" aria-live="polite">
        {spoken}
      </p>
    </figure>
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
  const { answer, byteUnit, boundaryWords } = own.props;
  return (
    <StackTip
      answer={answer}
      colours={own.colours}
      column={columnAt(answer, found.x)}
      x={found.x}
      span={found.span}
      boundary={found.boundary}
      boundaryWords={boundaryWords}
      byteUnit={byteUnit}
      leftPx={GUTTER.left + found.at.x}
      topPx={GUTTER.top + 4}
      flip={found.at.x > own.size.widthPx / 2}
    />
  );
}
