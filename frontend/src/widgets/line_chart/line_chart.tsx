/**
 * The line chart: bands, lines and marks over steps or time. The owner holds the range
 * and the cursor, so charts that share them move together.
 */

import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { X_LABEL, xText } from "../../model/lines/axis";
import { figureTitle } from "../../model/words/origin";
import { formatQuantity } from "../../model/words/quantity";
import { attachGestures, viewAfterKey, zoomStep } from "../../render/gestures";
import type { PointPx } from "../../render/gestures";
import type { RectPx } from "../../render/viewport";
import { DataTable } from "../export/data_table";
import { ExportMenu } from "../export/export_menu";
import type { ExportSource } from "../export/source";
import { bandRow, cursorRows, groupMarks, nearestLine, snapX, stepX } from "./cursor";
import { ChartButton } from "./chart_button";
import { chartTable } from "./data_table";
import { chartFigure } from "./figure";
import { Legend } from "./legend";
import "./line_chart.css";
import { ChartOverlay } from "./overlay";
import { Pace } from "./pace";
import { Plot, type PlotState } from "./plot";
import { fitY, projectY, rangeUnder, visibleLines, type ChartData } from "./shapes";
import type { LineChartProps, XRange } from "./types";
import { useWidth } from "./use_size";
import { ZoomButtons } from "./zoom_buttons";

/** The least that can be zoomed into: two steps, or 20 ms. */
const LEAST_STEPS = 2;
const LEAST_MS = 20;
const LINE_REACH_PX = 10;
/**
 * How often a chart is redrawn at most while something else moves it. Measured at 4,096
 * ranks x 10,000 steps: at 48 ms one frame in twenty of a pan takes two intervals.
 */
const FOLLOW_MS = 400;
/** A chart moved itself if its own gesture is no longer ago than this. */
const OWN_GESTURE_MS = 100;
/** A box at least this high also zooms the value axis. */
const TALL_BOX_PX = 16;

function widened(extent: XRange): XRange {
  if (extent.high > extent.low) return extent;
  return { low: extent.low - 0.5, high: extent.low + 0.5 };
}

function plotState(
  props: LineChartProps,
  data: ChartData,
  size: { readonly widthPx: number; readonly heightPx: number },
  y: XRange | null,
  fromZero: boolean,
): PlotState {
  const x = widened(props.range ?? props.extent);
  const logScale = props.logScale === true;
  return {
    data,
    x,
    y: y ?? fitY(data, x, { logScale, fromZero }),
    xKind: props.x,
    unit: props.unit,
    byteUnit: props.byteUnit ?? "auto",
    logScale,
    theme: props.theme,
    marks: (range, widthPx) => groupMarks(props.marks ?? [], range, widthPx),
    ...size,
  };
}

/** One sentence about the whole chart, for those who cannot see it. */
function summary(props: LineChartProps): string {
  const { lines, band } = props;
  const what =
    band === undefined || band === null
      ? `${lines.length} lines`
      : `a band over ${band.label} and ${lines.length} lines`;
  const from = xText(props.extent.low, props.x);
  return `${props.label}: ${what}, ${from} to ${xText(props.extent.high, props.x)}.`;
}

export function LineChart(props: LineChartProps) {
  const root = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const widthPx = useWidth(root);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [fromZero, setFromZero] = useState(true);
  const [yRange, setYRange] = useState<XRange | null>(null);
  const [asTable, setAsTable] = useState(false);
  const gestured = useRef(Number.NEGATIVE_INFINITY);
  const pace = useMemo(() => new Pace(FOLLOW_MS), []);
  const hover = useSignal<PointPx | null>(null);
  const box = useSignal<RectPx | null>(null);
  const spoken = useSignal("");
  const descriptionId = useId();

  const { lines, cursor, unit, theme } = props;
  const band = props.band ?? null;
  const limit = props.limit ?? null;
  const smoothing = props.smoothing ?? 0;
  const data = useMemo<ChartData>(
    () => ({ lines, band, limit, hidden, smoothing }),
    [lines, band, limit, hidden, smoothing],
  );
  const state = plotState(
    props,
    data,
    { widthPx, heightPx: props.heightPx },
    yRange,
    fromZero,
  );
  // Listeners outlive renders; they read what was rendered last.
  const latest = useRef({ props, data, state });
  latest.current = { props, data, state };

  const ready = widthPx > 0 && !asTable;
  useEffect(() => {
    const element = root.current;
    if (!ready || element === null) return;
    const made = new Plot(element, latest.current.state);
    plot.current = made;
    const detach = listen(made);
    const stop = cursor.subscribe((x) => made.setCursor(x, hover.peek()?.y ?? null));
    return () => {
      stop();
      detach();
      pace.stop();
      made.dispose();
      plot.current = null;
    };
  }, [ready, cursor, pace]);
  useEffect(() => {
    const ownGesture = performance.now() - gestured.current < OWN_GESTURE_MS;
    pace.ask(() => plot.current?.update(latest.current.state), ownGesture);
  });

  function limitsOf(extent: XRange) {
    const { low, high } = widened(extent);
    const least = latest.current.props.x === "step" ? LEAST_STEPS : LEAST_MS;
    return {
      world: { x0: low, x1: high, y0: 0, y1: 1 },
      leastX: Math.min(least, high - low),
      leastY: 1,
    };
  }
  function viewNow() {
    const { x } = latest.current.state;
    return { x0: x.low, x1: x.high, y0: 0, y1: 1 };
  }
  function setView(view: { readonly x0: number; readonly x1: number }): void {
    gestured.current = performance.now();
    const { extent, onRange } = latest.current.props;
    const whole = view.x0 <= extent.low && view.x1 >= extent.high;
    onRange(whole ? null : { low: view.x0, high: view.x1 });
  }
  function fit(): void {
    setYRange(null);
    latest.current.props.onRange(null);
  }
  function zoom(sign: number): void {
    const limits = limitsOf(latest.current.props.extent);
    setView(zoomStep(viewNow(), limits, sign, "x"));
  }

  function listen(made: Plot): () => void {
    const xAt = (px: number): number => {
      const { x, widthPx: width } = made.frame;
      return x.low + (px / width) * (x.high - x.low);
    };
    return attachGestures(made.over, {
      origin: { x: 0, y: 0 },
      size: () => made.frame,
      view: viewNow,
      limits: () => limitsOf(latest.current.props.extent),
      wheelAxes: () => "x",
      dragAxes: "x",
      onView: setView,
      onFit: fit,
      onBox: (rect) => {
        box.value = rect;
      },
      onBoxDone: (view, rect) => {
        const { logScale } = latest.current.state;
        if (rect.height >= TALL_BOX_PX && !logScale)
          setYRange(rangeUnder(made.frame, rect));
        if (rect.width >= TALL_BOX_PX) setView(view);
      },
      onHover: (at) => {
        hover.value = at;
        const { lines: drawn, band: spread } = latest.current.data;
        cursor.value = at === null ? null : snapX(drawn, spread, xAt(at.x));
        made.setCursor(cursor.peek(), at?.y ?? null);
      },
      onClick: (at) => {
        root.current?.focus({ preventScroll: true });
        pickAt(made, xAt(at.x), at.y);
      },
    });
  }

  function pickAt(made: Plot, x: number, yPx: number): void {
    const { data: drawn, props: current } = latest.current;
    const hit = nearestLine(
      visibleLines(drawn),
      x,
      yPx,
      projectY(made.frame),
      LINE_REACH_PX,
    );
    if (hit !== null) {
      current.onPick?.({ kind: "line", id: hit.id, x });
      return;
    }
    const spread = drawn.band === null ? null : bandRow(drawn.band, x);
    const rank = spread?.highRank ?? null;
    if (rank !== null) {
      current.onPick?.({ kind: "band", rank, x });
    }
  }

  function moveCursor(count: number): void {
    const { state: shown, data: drawn } = latest.current;
    const from = cursor.peek() ?? (shown.x.low + shown.x.high) / 2;
    const x = stepX(drawn.lines, drawn.band, from, count);
    cursor.value = x;
    const [top] = cursorRows(drawn.lines, x);
    const median = drawn.band === null ? null : bandRow(drawn.band, x);
    const words = [xText(x, shown.xKind)];
    if (median !== null) words.push(`median ${formatQuantity(median.median, unit)}`);
    if (top !== undefined) {
      words.push(`highest ${top.label} ${formatQuantity(top.value, unit)}`);
    }
    spoken.value = words.join(", ");
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const stepping = event.shiftKey ? 10 : 1;
    const limits = limitsOf(props.extent);
    if (event.key === "ArrowRight") moveCursor(stepping);
    else if (event.key === "ArrowLeft") moveCursor(-stepping);
    else if (event.key === "Escape") cursor.value = null;
    else if (event.key === "Enter" && plot.current !== null) {
      const at = cursor.peek();
      const [top] = at === null ? [] : cursorRows(data.lines, at);
      const y = projectY(plot.current.frame)(top?.value ?? NaN);
      if (at !== null) pickAt(plot.current, at, y);
    } else if (event.key === "f" || event.key === "F") fit();
    else {
      const next = viewAfterKey(event.key, viewNow(), limits, "x");
      if (next === null) return;
      setView(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  const exported: ExportSource = {
    origin: props.origin,
    name: props.label,
    table: () => chartTable(props.x, unit, visibleLines(data), band, state.x),
    about: () => ({ label: props.label, unit, x: props.x, marks: props.marks ?? [] }),
    figure: () => {
      const frame = plot.current?.frame ?? {
        x: state.x,
        y: state.y,
        widthPx: Math.max(300, widthPx - 90),
        heightPx: props.heightPx - 40,
        logScale: state.logScale,
      };
      return chartFigure(
        figureTitle(props.label, props.origin),
        state,
        frame,
        props.marks ?? [],
      );
    },
  };

  if (props.exporter !== undefined) props.exporter.current = exported;

  return (
    <figure class="chart">
      <div class="chart-bar">
        <figcaption>{props.title ?? props.label}</figcaption>
        <span class="chart-axis-name">{X_LABEL[props.x]}</span>
        <ChartButton
          label={fromZero ? "Fit the value axis to the data" : "Start values at zero"}
          icon="zero"
          pressed={fromZero}
          onClick={() => {
            setYRange(null);
            setFromZero(!fromZero);
          }}
        />
        <ZoomButtons zoom={zoom} fit={fit} />
        <ChartButton
          label={asTable ? "View as chart" : "View as table"}
          icon={asTable ? "chart" : "table"}
          onClick={() => setAsTable(!asTable)}
        />
        <ExportMenu subject={props.label} source={exported} />
      </div>
      <div
        ref={root}
        class="chart-plot"
        style={{ height: `${props.heightPx}px` }}
        tabIndex={asTable ? -1 : 0}
        role={asTable ? undefined : "application"}
        aria-label={`Chart of ${props.label}`}
        aria-describedby={descriptionId}
        onKeyDown={asTable ? undefined : onKeyDown}
      >
        {asTable && (
          <DataTable
            label={props.label}
            heightPx={props.heightPx}
            table={chartTable(props.x, unit, visibleLines(data), band, state.x)}
          />
        )}
        {ready && (
          <ChartOverlay
            hover={hover}
            box={box}
            cursor={cursor}
            plot={plot}
            marks={props.marks ?? []}
          />
        )}
      </div>
      {props.children}
      {props.legend !== false && (
        <Legend
          lines={lines}
          band={band}
          cursor={cursor}
          hidden={hidden}
          unit={unit}
          byteUnit={props.byteUnit ?? "auto"}
          theme={theme}
          onToggle={(id) => {
            const next = new Set(hidden);
            if (!next.delete(id)) next.add(id);
            setHidden(next);
          }}
        />
      )}
      <p id={descriptionId} class="off-screen">
        {summary(props)} Arrow keys read values, W and S zoom, A and D pan, F shows
        everything.
      </p>
      <p class="off-screen" aria-live="polite">
        {spoken}
      </p>
    </figure>
  );
}
