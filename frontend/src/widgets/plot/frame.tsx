/**
 * Charts over one x axis: two canvases (the chart, and what moves with the pointer);
 * gestures and the keys that move the view; the picture of it. Owners say what is
 * painted, what lies under the pointer and what keys of their own do.
 */

import { effect, useSignal, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Table } from "../../model/table";
import {
  attachGestures,
  viewAfterKey,
  zoomStep,
  type PointPx,
} from "../../render/gestures";
import type { Limits, RectPx, SizePx, Viewport } from "../../render/viewport";
import type { Theme } from "../../base/tokens";
import { figureTitle, type Origin } from "../../model/words/origin";
import { figureOf, type LegendItem } from "../export/figure";
import type { Pen } from "../export/pen";
import type { ExportSource } from "../export/source";
import type { XRange } from "../line_chart/types";
import { useWidth } from "../line_chart/use_size";
import { fitted } from "./canvas";
import { ChartFrame } from "./chart_frame";
import { Pace } from "./pace";

/** What part of the chart is in sight, and how large the plot is. */
export interface Seen {
  readonly view: Viewport;
  readonly size: SizePx;
}

export const NOTHING_SEEN: Seen = {
  view: { x0: 0, x1: 1, y0: 1, y1: 0 },
  size: { widthPx: 1, heightPx: 1 },
};

/** How a look is painted; functions that stay the same. */
export interface PlotPainter<Look> {
  /** The chart with its axes: all that does not move with the pointer. */
  readonly frame: (pen: Pen, look: Look, seen: Seen) => void;
  /** The cursor, and the box that is being drawn; called when a signal it reads changes. */
  readonly over: (pen: Pen, look: Look, seen: Seen, box: RectPx | null) => void;
}

/**
 * How often a chart is redrawn at most while something else moves it. Measured at 4,096
 * ranks x 10,000 steps: at 48 ms one frame in twenty of a pan takes two intervals.
 */
const FOLLOW_MS = 400;
/** A chart moved itself if its own gesture is no longer ago than this. */
const OWN_GESTURE_MS = 100;
/** A box at least this wide zooms. */
const WIDE_BOX_PX = 4;

export interface PlotFrameProps<Look extends { readonly theme: Theme }> {
  /** Class of the figure; the plot has `${kind}-plot`. */
  readonly kind: string;
  readonly label: string;
  /** Stands in the bar where it is not the label. */
  readonly title?: string;
  readonly axisName: string;
  /** What the export menu says it writes. */
  readonly subject: string;
  /** What is painted; another object is painted again. */
  readonly look: Look;
  readonly painter: PlotPainter<Look>;
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly onRange: (range: XRange | null) => void;
  /** The least of x that can be zoomed into. */
  readonly leastX: number;
  /** The values at the plot's upper and lower edge. */
  readonly y0: number;
  readonly y1?: number;
  readonly gutter: {
    readonly left: number;
    readonly right: number;
    readonly top: number;
  };
  readonly plotPx: number;
  /** With all that lies around the plot. */
  readonly totalPx: number;
  /** Filled with what is in sight. */
  readonly seen: { current: Seen };
  readonly onHover: (at: PointPx | null) => void;
  readonly onClick: (at: PointPx) => void;
  /** Besides x: what a box that was drawn chooses. Without it boxes have no height. */
  readonly onBox?: (box: RectPx) => void;
  /** Besides showing everything: what F resets. */
  readonly onFit?: () => void;
  /** Keys of the owner; true: it was one. */
  readonly onKey: (event: KeyboardEvent) => boolean;
  readonly table: (view: Viewport) => Table;
  readonly origin: Origin;
  /** What the chart is about, beside the columns in JSON. */
  readonly about: () => Readonly<Record<string, unknown>>;
  /** What is drawn, by name, for a picture's legend. */
  readonly names: readonly LegendItem[];
  /** Filled with what the export menu writes, for menus elsewhere. */
  readonly exporter?: { current: ExportSource | null } | undefined;
  readonly bar?: ComponentChildren;
  readonly tip: (seen: Seen) => ComponentChildren;
  readonly children?: ComponentChildren;
  readonly legend: ComponentChildren;
  readonly help: string;
  readonly spoken: ReadonlySignal<string>;
}

export function PlotFrame<Look extends { readonly theme: Theme }>(
  props: PlotFrameProps<Look>,
) {
  const { look, painter, range, y0, y1 = 0, gutter, plotPx, totalPx } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const widthPx = useWidth(box);
  const [asTable, setAsTable] = useState(false);
  const drawing = useSignal<RectPx | null>(null);
  const pace = useMemo(() => new Pace(FOLLOW_MS), []);
  const gestured = useRef(Number.NEGATIVE_INFINITY);
  const painted = useRef<Viewport | null>(null);
  const extent = widened(props.extent);
  const { low, high } = widened(range ?? extent);
  const seen = useMemo<Seen>(
    () => ({
      view: { x0: low, x1: high, y0, y1 },
      size: {
        widthPx: Math.max(1, widthPx - gutter.left - gutter.right),
        heightPx: plotPx,
      },
    }),
    [low, high, y0, y1, widthPx, plotPx, gutter],
  );
  props.seen.current = seen;
  const latest = useRef({ props, extent });
  latest.current = { props, extent };
  const ready = widthPx > 0 && !asTable;

  useLayoutEffect(() => {
    if (!ready) return;
    const { current: before } = painted;
    const moved = before !== null && (before.x0 !== low || before.x1 !== high);
    const own = performance.now() - gestured.current < OWN_GESTURE_MS;
    painted.current = seen.view;
    const paint = (): void => {
      const context = fitted(frame.current, widthPx, totalPx);
      if (context !== null) painter.frame(context, look, seen);
    };
    pace.ask(paint, own || !moved);
  }, [painter, look, seen, totalPx, ready]);
  useEffect(() => () => pace.stop(), [pace]);
  useEffect(() => {
    if (!ready) return undefined;
    return effect(() => {
      const context = fitted(over.current, widthPx, totalPx);
      const rect = drawing.value;
      if (context === null) return;
      const tall = latest.current.props.onBox !== undefined;
      const shown = rect && {
        x: gutter.left + rect.x,
        y: gutter.top + (tall ? rect.y : 0),
        width: rect.width,
        height: tall ? rect.height : plotPx,
      };
      painter.over(context, look, seen, shown);
    });
  }, [painter, look, seen, totalPx, ready]);

  const limits = (): Limits => {
    const { low: x0, high: x1 } = latest.current.extent;
    const leastX = Math.min(latest.current.props.leastX, x1 - x0);
    return { world: { x0, x1, y0: 0, y1: 1 }, leastX, leastY: 1 };
  };
  const flat = (): Viewport => {
    const { x0, x1 } = latest.current.props.seen.current.view;
    return { x0, x1, y0: 0, y1: 1 };
  };
  const setView = ({ x0, x1 }: Pick<Viewport, "x0" | "x1">): void => {
    gestured.current = performance.now();
    const { extent: all, props: now } = latest.current;
    now.onRange(x0 <= all.low && x1 >= all.high ? null : { low: x0, high: x1 });
  };
  const fit = (): void => {
    gestured.current = performance.now();
    latest.current.props.onFit?.();
    latest.current.props.onRange(null);
  };
  useEffect(() => {
    const target = input.current;
    if (!ready || target === null) return undefined;
    return attachGestures(target, {
      origin: { x: 0, y: 0 },
      size: () => latest.current.props.seen.current.size,
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
        latest.current.props.onBox?.(rect);
        if (rect.width >= WIDE_BOX_PX) setView(next);
      },
      onHover: (at) => latest.current.props.onHover(at),
      onClick: (at) => {
        plot.current?.focus({ preventScroll: true });
        latest.current.props.onClick(at);
      },
    });
  }, [ready]);

  function onKey(event: KeyboardEvent): boolean {
    if (props.onKey(event)) return true;
    const next = viewAfterKey(event.key, flat(), limits(), "x");
    if (event.key === "f" || event.key === "F") fit();
    else if (next === null) return false;
    else setView(next);
    return true;
  }

  const { label, axisName, origin } = props;
  const table = () => props.table(props.seen.current.view);
  const source: ExportSource = {
    ...{ origin, table, about: props.about, name: label },
    figure: () => {
      const { size } = props.seen.current;
      return figureOf({
        ...{ axisName, theme: look.theme, legend: props.names },
        title: figureTitle(label, origin),
        widthPx: gutter.left + size.widthPx + gutter.right,
        heightPx: totalPx,
        paint: (pen) => painter.frame(pen, look, props.seen.current),
      });
    },
  };
  if (props.exporter !== undefined) props.exporter.current = source;

  return (
    <ChartFrame
      kind={props.kind}
      label={label}
      title={props.title ?? label}
      subject={props.subject}
      source={source}
      zoom={(sign) => setView(zoomStep(flat(), limits(), sign, "x"))}
      fit={fit}
      table={table}
      asTable={asTable}
      onAsTable={setAsTable}
      heightPx={totalPx}
      onKey={onKey}
      box={box}
      plotRef={plot}
      legend={props.legend}
      help={props.help}
      spoken={props.spoken}
      bar={
        <>
          <span class="chart-axis-name">{axisName}</span>
          {props.bar}
        </>
      }
      plot={
        <>
          <canvas ref={frame} />
          <canvas ref={over} />
          <div
            ref={input}
            class="plot-input"
            style={{
              left: `${gutter.left}px`,
              right: `${gutter.right}px`,
              top: `${gutter.top}px`,
            }}
          />
          {props.tip(seen)}
        </>
      }
    >
      {props.children}
    </ChartFrame>
  );
}

/** What has no width is shown in the middle of some. */
function widened({ low, high }: XRange): XRange {
  return high > low ? { low, high } : { low: low - 0.5, high: low + 0.5 };
}
