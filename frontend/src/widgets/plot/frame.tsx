/**
 * Charts over one x axis: two canvases (the chart, and what moves with the pointer), the
 * cursor with its keys, tip and spoken words, gestures, and the picture of it. Owners say
 * what is painted and what stands at an x.
 */

import { effect, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "../../base/tokens";
import { highestColumn, localPeaks, nextPeak } from "../../model/lines/peaks";
import type { Table } from "../../model/table";
import { figureTitle, type Origin } from "../../model/words/origin";
import {
  attachGestures,
  panStep,
  viewAfterKey,
  zoomStep,
  type Axes,
  type PointPx,
} from "../../render/gestures";
import {
  pxToX,
  pxToY,
  xToPx,
  yToPx,
  type Limits,
  type RectPx,
  type SizePx,
  type Viewport,
} from "../../render/viewport";
import { figureOf } from "../export/figure";
import type { Pen } from "../export/pen";
import type { ExportSource } from "../export/source";
import { AXIS_PX, paintPointer, SIDES } from "./axes";
import { fitted, useWidth } from "./canvas";
import { ChartFrame } from "./chart_frame";
import { CursorLegend, type Named } from "./legend";
import { Pace } from "./pace";
import { rangeAround, widened, type XRange } from "./range";
import { ReadingTip, spokenWords } from "./reading";
import type { Reader, Rows } from "./reader";
import { usePlotCommands, type PlotPage } from "./commands";

/** What part of the chart is in sight, and where the plot is on the canvas. */
export interface Seen {
  readonly view: Viewport;
  readonly size: SizePx;
  readonly left: number;
  readonly top: number;
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
const TOP_PX = 12;

export interface PlotProps {
  /** Class of the figure; the plot has `${kind}-plot`. */
  readonly kind: string;
  /** What kind of drawing it is, in its name: "Heatmap". */
  readonly what?: string;
  readonly label: string;
  /** Stands in the bar where it is not the label. */
  readonly title?: string | undefined;
  readonly axisName: string;
  /** What the export menu says it writes. */
  readonly subject: string;
  readonly theme: Theme;
  /** The chart with its axes; another function is painted again. */
  readonly paint: (pen: Pen, seen: Seen) => void;
  /** The pointer's row has a line too; "cells": both are seen on every colour. */
  readonly cross?: boolean | "cells";
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly onRange: (range: XRange | null) => void;
  /** The least of x that can be zoomed into. */
  readonly leastX: number;
  /** The values at the plot's upper and lower edge. */
  readonly y: readonly [upper: number, lower: number];
  /** Rows that are zoomed and moved as x is. */
  readonly rows?: Rows;
  readonly plotPx: number;
  /** Above the plot. */
  readonly topPx?: number;
  /** Below the axis: what stands there belongs to x as well. */
  readonly stripPx?: number;
  /** x under the pointer, shared by the charts that should move together. */
  readonly cursor?: Signal<number | null> | undefined;
  readonly reader: Reader;
  /** Called with what is in sight before it is painted. */
  readonly onSeen?: (seen: Seen) => void;
  /** Besides x: what a box that was drawn chooses. Without it boxes have no height. */
  readonly onBox?: (box: RectPx, seen: Seen) => void;
  /** Besides showing everything: what F resets. */
  readonly onFit?: () => void;
  readonly table: (view: Viewport) => Table;
  /** What files hold where that is more than the table. */
  readonly fileTable?: () => Table;
  readonly origin: Origin;
  /** What the chart is about, beside the columns in JSON. */
  readonly about: () => Readonly<Record<string, unknown>>;
  /** What is drawn, by name, with values at the cursor. */
  readonly names: (x: number | null) => readonly Named[];
  /** What pictures name besides. */
  readonly pictured?: readonly Named[];
  readonly onToggle?: (index: number) => void;
  /** Whether the names stand below the chart, too; default yes. */
  readonly legend?: boolean | undefined;
  /** The page whose keys and exports the chart's are as well. */
  readonly page?: PlotPage | undefined;
  readonly bar?: ComponentChildren;
  /** Lies below the canvases. */
  readonly under?: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly help: string;
}

export function Plot(props: PlotProps) {
  const { theme, paint, rows, plotPx, topPx = TOP_PX, stripPx = 0, cross } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const widthPx = useWidth(box);
  const [asTable, setAsTable] = useState(false);
  const own = useSignal<number | null>(null);
  const cursor = props.cursor ?? own;
  const hover = useSignal<PointPx | null>(null);
  const drawing = useSignal<RectPx | null>(null);
  const spoken = useSignal("");
  const pace = useMemo(() => new Pace(FOLLOW_MS), []);
  const gestured = useRef(Number.NEGATIVE_INFINITY);
  const painted = useRef<Viewport | null>(null);
  const extent = widened(props.extent);
  const { low, high } = widened(props.range ?? extent);
  const [y0, y1] = props.y;
  const seen = useMemo<Seen>(
    () => ({
      view: { x0: low, x1: high, y0, y1 },
      size: {
        widthPx: Math.max(1, widthPx - SIDES.left - SIDES.right),
        heightPx: plotPx,
      },
      left: SIDES.left,
      top: topPx,
    }),
    [low, high, y0, y1, widthPx, plotPx, topPx],
  );
  const totalPx = topPx + plotPx + AXIS_PX + stripPx;
  const now = useRef({ props, extent, seen });
  now.current = { props, extent, seen };
  const ready = widthPx > 0 && !asTable;
  const axes: Axes = rows === undefined ? "x" : "both";

  useLayoutEffect(() => {
    if (ready) props.onSeen?.(seen);
  }, [seen, ready, props.onSeen]);
  useLayoutEffect(() => {
    if (!ready) return;
    const { current: before } = painted;
    const moved = before !== null && (before.x0 !== low || before.x1 !== high);
    const isOwn = performance.now() - gestured.current < OWN_GESTURE_MS;
    painted.current = seen.view;
    const draw = (): void => {
      const context = fitted(frame.current, widthPx, totalPx);
      if (context !== null) paint(context, seen);
    };
    pace.ask(draw, isOwn || !moved);
  }, [paint, seen, totalPx, ready]);
  useEffect(() => () => pace.stop(), [pace]);
  useEffect(() => {
    if (!ready) return undefined;
    return effect(() => {
      const context = fitted(over.current, widthPx, totalPx);
      const [x, y, rect] = [cursor.value ?? NaN, hover.value?.y ?? NaN, drawing.value];
      if (context === null) return;
      const isTall = rows !== undefined || now.current.props.onBox !== undefined;
      const box = isTall || rect === null ? rect : { ...rect, y: 0, height: plotPx };
      const row = cross === undefined ? NaN : y;
      paintPointer(context, theme, seen, { x, row, box, stripPx, on: cross });
    });
  }, [theme, cursor, seen, totalPx, ready]);

  const limits = (): Limits => {
    const { extent: all, props: latest } = now.current;
    const [first, last] = latest.rows?.all ?? [0, 1];
    return {
      world: { x0: all.low, x1: all.high, y0: first, y1: last },
      leastX: Math.min(latest.leastX, all.high - all.low),
      leastY: latest.rows?.least ?? 1,
    };
  };
  const view = (): Viewport => {
    const { view: whole } = now.current.seen;
    return now.current.props.rows === undefined ? { ...whole, y0: 0, y1: 1 } : whole;
  };
  const setView = (next: Viewport): void => {
    gestured.current = performance.now();
    const { extent: all, props: latest } = now.current;
    latest.rows?.onRows([next.y0, next.y1]);
    const isAll = next.x0 <= all.low && next.x1 >= all.high;
    latest.onRange(isAll ? null : { low: next.x0, high: next.x1 });
  };
  const fit = (): void => {
    gestured.current = performance.now();
    const { props: latest } = now.current;
    latest.onFit?.();
    latest.rows?.onRows(latest.rows.all);
    latest.onRange(null);
  };
  const zoom = (sign: number): void => setView(zoomStep(view(), limits(), sign, axes));
  const pan = (sign: number): void => setView(panStep(view(), limits(), sign));

  const middle = (): number =>
    (now.current.seen.view.x0 + now.current.seen.view.x1) / 2;
  const pointAt = (x: number, y: number): PointPx => {
    const { view: shown, size } = now.current.seen;
    return { x: xToPx(shown, size.widthPx, x), y };
  };
  /** Puts the cursor on x as the pointer would, and says what stands there. */
  const goTo = (x: number | null, y = NaN): boolean => {
    if (x === null || !Number.isFinite(x)) return false;
    const { extent: all, props: latest } = now.current;
    const next = rangeAround(latest.range, x, all);
    if (next !== latest.range) latest.onRange(next);
    const at = pointAt(x, y);
    cursor.value = x;
    hover.value = at;
    const reading = latest.reader.read(x, at, now.current.seen);
    if (reading !== null) spoken.value = spokenWords(reading);
    return true;
  };
  /** The middle of the row so many below the pointer's, in px. */
  const rowPx = (count: number): number => {
    const { seen: shown, props: latest } = now.current;
    if (latest.rows === undefined) return NaN;
    const { view: part, size } = shown;
    const y = hover.peek()?.y ?? NaN;
    const from = Number.isNaN(y)
      ? (part.y0 + part.y1) / 2
      : pxToY(part, size.heightPx, y);
    const each = Math.max(1, Math.round((part.y1 - part.y0) / size.heightPx));
    const row = Math.floor(from) + count * each;
    const last = latest.rows.all[1] - 1;
    return yToPx(part, size.heightPx, Math.min(Math.max(row, 0), last) + 0.5);
  };
  const step = (count: number): boolean => {
    const from = cursor.peek() ?? middle();
    return goTo(now.current.props.reader.step(from, count), rowPx(0));
  };
  const toStop = (stops: readonly number[], side: -1 | 1): boolean => {
    const { x0, x1 } = now.current.seen.view;
    const from = cursor.peek() ?? (side > 0 ? x0 - 1 : x1 + 1);
    return goTo(nextPeak(stops, from, side));
  };
  const down = (count: number): boolean => {
    const { rows: latest, reader } = now.current.props;
    if (latest !== undefined) return goTo(cursor.peek() ?? middle(), rowPx(count));
    return reader.stops !== undefined && toStop(reader.stops, count > 0 ? 1 : -1);
  };
  const toPeak = (): boolean => {
    const { reader } = now.current.props;
    const columns = reader.columns?.();
    const drawn = columns?.x[highestColumn(columns.y)];
    return goTo(reader.peak?.() ?? drawn ?? null);
  };
  const toNextPeak = (side: -1 | 1): boolean => {
    const columns = now.current.props.reader.columns?.();
    return columns !== undefined && toStop(localPeaks(columns), side);
  };
  const pick = (): boolean => {
    const x = cursor.peek();
    if (x !== null) now.current.props.reader.pick?.(x, hover.peek() ?? pointAt(x, NaN));
    return true;
  };
  const leave = (): boolean => {
    const had = cursor.peek() !== null;
    cursor.value = hover.value = null;
    return had;
  };

  useEffect(() => {
    const target = input.current;
    if (!ready || target === null) return undefined;
    const { rows: isFree } = now.current.props;
    const inset = isFree === undefined ? { x: 0, y: 0 } : { x: SIDES.left, y: topPx };
    return attachGestures(target, {
      origin: inset,
      size: () => now.current.seen.size,
      view,
      limits,
      wheelAxes: ({ x, y }) => {
        if (isFree === undefined || y > now.current.seen.size.heightPx) return "x";
        return x < 0 ? "y" : "both";
      },
      dragAxes: axes,
      onView: setView,
      onFit: fit,
      onBox: (rect) => {
        drawing.value = rect;
      },
      onBoxDone: (next, rect) => {
        now.current.props.onBox?.(rect, now.current.seen);
        if (isFree !== undefined || rect.width >= WIDE_BOX_PX) setView(next);
      },
      onHover: (at) => {
        const { seen: shown, props: latest } = now.current;
        const { widthPx: wide, heightPx } = shown.size;
        const isIn = at !== null && at.x >= 0 && at.x < wide && at.y >= 0;
        const inside = isIn && (isFree === undefined || at.y < heightPx) ? at : null;
        const x = inside && latest.reader.snap(pxToX(shown.view, wide, inside.x));
        cursor.value = x;
        hover.value = x === null ? null : inside;
      },
      onClick: (at) => {
        plot.current?.focus({ preventScroll: true });
        const { seen: shown, props: latest } = now.current;
        const x = latest.reader.snap(pxToX(shown.view, shown.size.widthPx, at.x));
        if (x !== null) latest.reader.pick?.(x, at);
      },
    });
  }, [ready, axes, topPx]);

  function onKey({ key, shiftKey }: KeyboardEvent): boolean {
    const far = shiftKey ? 10 : 1;
    const keys: Readonly<Record<string, () => boolean>> = {
      ArrowRight: () => step(far),
      ArrowLeft: () => step(-far),
      ArrowDown: () => down(far),
      ArrowUp: () => down(-far),
      Enter: pick,
      Escape: leave,
      p: toPeak,
      "[": () => toNextPeak(-1),
      "]": () => toNextPeak(1),
    };
    const named = keys[key.length === 1 ? key.toLowerCase() : key];
    if (named !== undefined) return named();
    if (key === "f" || key === "F") fit();
    else {
      const next = viewAfterKey(key, view(), limits(), axes);
      if (next === null) return false;
      setView(next);
    }
    return true;
  }

  const { label, axisName, origin } = props;
  const table = () => props.table(now.current.seen.view);
  const source: ExportSource = {
    ...{ origin, table: props.fileTable ?? table, about: props.about, name: label },
    figure: () =>
      figureOf({
        ...{ axisName, theme, title: figureTitle(label, origin) },
        legend: [...props.names(null), ...(props.pictured ?? [])].filter(
          ({ isHidden }) => isHidden !== true,
        ),
        widthPx: SIDES.left + now.current.seen.size.widthPx + SIDES.right,
        heightPx: totalPx,
        paint: (pen) => props.paint(pen, now.current.seen),
      }),
  };
  usePlotCommands(props.page, source, { fit, zoom, pan, toPeak, toNextPeak });

  const inset = {
    left: `${SIDES.left}px`,
    right: `${SIDES.right}px`,
    top: `${topPx}px`,
  };
  return (
    <ChartFrame
      kind={props.kind}
      {...(props.what === undefined ? {} : { what: props.what })}
      label={label}
      title={props.title ?? label}
      subject={props.subject}
      source={source}
      zoom={zoom}
      fit={fit}
      table={table}
      asTable={asTable}
      onAsTable={setAsTable}
      heightPx={totalPx}
      onKey={onKey}
      box={box}
      plotRef={plot}
      legend={
        props.legend !== false && (
          <CursorLegend names={props.names} cursor={cursor} onToggle={props.onToggle} />
        )
      }
      help={props.help}
      spoken={spoken}
      bar={props.bar}
      axisName={axisName}
      plot={
        <>
          {props.under}
          <canvas ref={frame} />
          <canvas ref={over} />
          <div
            ref={input}
            class={`plot-input ${props.kind}-input`}
            style={rows === undefined ? inset : { inset: 0 }}
          />
          <ReadingTip
            hover={hover}
            cursor={cursor}
            read={props.reader.read}
            seen={seen}
            totalPx={totalPx}
            beside={rows !== undefined}
          />
        </>
      }
    >
      {props.children}
    </ChartFrame>
  );
}
