/**
 * What stacked charts have in common: the bar above with zoom, table and export; three
 * canvases (the stack, its axes, the cursor); gestures and the keys that move the view.
 * Owners say what is painted, what lies under the pointer and what keys of their own do.
 */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import {
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "preact/hooks";
import type { Table } from "../../model/table";
import {
  attachGestures,
  viewAfterKey,
  zoomStep,
  type PointPx,
} from "../../render/gestures";
import type { Limits, RectPx, SizePx, Viewport } from "../../render/viewport";
import { DataTable } from "../export/data_table";
import { ExportMenu } from "../export/export_menu";
import type { ExportSource } from "../export/source";
import { ChartButton } from "../line_chart/chart_button";
import type { XRange } from "../line_chart/types";
import { useWidth } from "../line_chart/use_size";
import { ZoomButtons } from "../line_chart/zoom_buttons";
import { fitted } from "./canvas";

/** What part of the stack is in sight, and how large it is drawn. */
export interface Seen {
  readonly view: Viewport;
  readonly size: SizePx;
}

export const NOTHING_SEEN: Seen = {
  view: { x0: 0, x1: 1, y0: 1, y1: 0 },
  size: { widthPx: 1, heightPx: 1 },
};

/** How a look is painted; functions that stay the same. */
export interface StackPainter<Look> {
  /** The stack, on a canvas of the plot's size. */
  readonly cells: (canvas: HTMLCanvasElement | null, look: Look, seen: Seen) => void;
  /** Axes and all that does not move with the pointer. */
  readonly frame: (context: CanvasRenderingContext2D, look: Look, seen: Seen) => void;
  /** The cursor, and the box that is being drawn. */
  readonly over: (
    context: CanvasRenderingContext2D,
    look: Look,
    seen: Seen,
    box: RectPx | null,
  ) => void;
}

export interface StackFrameProps<Look> {
  /** Class of the figure; the plot has `${kind}-plot`. */
  readonly kind: string;
  readonly label: string;
  readonly axisName: string;
  /** What the export menu says it writes. */
  readonly subject: string;
  /** What is painted; another object is painted again. */
  readonly look: Look;
  readonly painter: StackPainter<Look>;
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly onRange: (range: XRange | null) => void;
  /** The least of x that can be zoomed into. */
  readonly leastX: number;
  /** The value at the plot's upper edge. */
  readonly top: number;
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
  /** Whatever moves the cursor. */
  readonly cursor: ReadonlySignal<unknown>;
  readonly onHover: (at: PointPx | null) => void;
  readonly onClick: (at: PointPx) => void;
  /** Keys of the owner; true: it was one. */
  readonly onKey: (event: KeyboardEvent) => boolean;
  readonly table: (view: Viewport) => Table;
  readonly source: ExportSource;
  readonly bar?: ComponentChildren;
  readonly tip: (seen: Seen) => ComponentChildren;
  readonly legend: ComponentChildren;
  readonly help: string;
  readonly spoken: ReadonlySignal<string>;
}

export function StackFrame<Look>(props: StackFrameProps<Look>) {
  const { look, painter, extent, range, top, gutter, plotPx, totalPx, cursor } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const widthPx = useWidth(box);
  const [asTable, setAsTable] = useState(false);
  const drawing = useSignal<RectPx | null>(null);
  const helpId = useId();
  const low = range?.low ?? extent.low;
  const high = range?.high ?? extent.high;
  const seen = useMemo<Seen>(
    () => ({
      view: { x0: low, x1: high > low ? high : low + 1, y0: top, y1: 0 },
      size: {
        widthPx: Math.max(1, widthPx - gutter.left - gutter.right),
        heightPx: plotPx,
      },
    }),
    [low, high, top, widthPx, plotPx, gutter],
  );
  props.seen.current = seen;
  const latest = useRef(props);
  latest.current = props;
  const ready = widthPx > 0 && !asTable;

  useLayoutEffect(() => {
    if (!ready) return;
    painter.cells(cells.current, look, seen);
    const context = fitted(frame.current, widthPx, totalPx);
    if (context !== null) painter.frame(context, look, seen);
  }, [painter, look, seen, totalPx, ready]);
  useEffect(() => {
    if (!ready) return undefined;
    const redraw = (): void => {
      const context = fitted(over.current, widthPx, totalPx);
      if (context !== null) painter.over(context, look, seen, drawing.peek());
    };
    const stops = [cursor.subscribe(redraw), drawing.subscribe(redraw)];
    return () => {
      for (const stop of stops) stop();
    };
  }, [painter, look, seen, totalPx, ready, cursor]);

  const limits = (): Limits => {
    const { extent: all, leastX } = latest.current;
    const x1 = all.high > all.low ? all.high : all.low + 1;
    return {
      world: { x0: all.low, x1, y0: 0, y1: 1 },
      leastX: Math.min(leastX, x1 - all.low),
      leastY: 1,
    };
  };
  const flat = (): Viewport => {
    const { x0, x1 } = latest.current.seen.current.view;
    return { x0, x1, y0: 0, y1: 1 };
  };
  const setView = ({ x0, x1 }: Pick<Viewport, "x0" | "x1">): void => {
    const { extent: all, onRange } = latest.current;
    onRange(x0 <= all.low && x1 >= all.high ? null : { low: x0, high: x1 });
  };
  const fit = (): void => latest.current.onRange(null);
  useEffect(() => {
    const target = plot.current;
    if (!ready || target === null) return undefined;
    return attachGestures(target, {
      origin: { x: gutter.left, y: gutter.top },
      size: () => latest.current.seen.current.size,
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
        if (rect.width >= 4) setView(next);
      },
      onHover: (at) => latest.current.onHover(at),
      onClick: (at) => {
        plot.current?.focus({ preventScroll: true });
        latest.current.onClick(at);
      },
    });
  }, [ready, cursor]);

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (!props.onKey(event)) {
      const next = viewAfterKey(event.key, flat(), limits(), "x");
      if (event.key === "f" || event.key === "F") fit();
      else if (next === null) return;
      else setView(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <figure class={`chart ${props.kind}`}>
      <div class="chart-bar">
        <figcaption>{props.label}</figcaption>
        <span class="chart-axis-name">{props.axisName}</span>
        {props.bar}
        <ZoomButtons
          zoom={(sign) => setView(zoomStep(flat(), limits(), sign, "x"))}
          fit={fit}
        />
        <ChartButton
          label={asTable ? "View as chart" : "View as table"}
          icon={asTable ? "chart" : "table"}
          onClick={() => setAsTable(!asTable)}
        />
        <ExportMenu subject={props.subject} source={props.source} />
      </div>
      <div ref={box}>
        {asTable ? (
          <DataTable
            label={props.label}
            heightPx={totalPx}
            table={props.table(seen.view)}
          />
        ) : (
          <div
            ref={plot}
            class={`chart-plot ${props.kind}-plot`}
            style={{ height: `${totalPx}px` }}
            tabIndex={0}
            role="application"
            aria-label={props.label}
            aria-describedby={helpId}
            onKeyDown={onKeyDown}
          >
            <canvas
              ref={cells}
              style={{ left: `${gutter.left}px`, top: `${gutter.top}px` }}
            />
            <canvas ref={frame} />
            <canvas ref={over} />
            {props.tip(seen)}
          </div>
        )}
      </div>
      {props.legend}
      <p id={helpId} class="off-screen">
        {props.help}
      </p>
      <p class="off-screen" aria-live="polite">
        {props.spoken}
      </p>
    </figure>
  );
}
