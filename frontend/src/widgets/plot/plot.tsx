/** Two canvases: the chart, and what moves with the pointer. */

import { effect, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useCommands } from "../../base/commands";
import { useWidgetFlag } from "../../base/widget_words";
import type { Table } from "../../model/table";
import { figureTitle, type Origin } from "../../model/words/origin";
import { attachGestures, type PointPx } from "../../render/gestures";
import type { RectPx, Viewport } from "../../render/viewport";
import { figureOf } from "../export/figure";
import type { ExportSource } from "../export/source";
import { AXIS_PX, paintPicture, paintPointer, SIDES } from "./axes";
import { fitted, Pace, useWidth } from "./canvas";
import { ChartFrame, type ChartFrameProps } from "./chart_frame";
import { CursorLegend, type LegendEntry } from "./legend";
import { movesOf, type MovesProps } from "./moves";
import { widened, type XRange } from "./range";
import type { PlotSight } from "./reader";
import { ReadingTip } from "./reading";

/**
 * Least time between drawings while another chart is dragged. Measured at 4,096 ranks x
 * 10,000 steps: at 48 ms one frame in twenty of a pan takes two intervals.
 */
const FOLLOW_MS = 400;
/** A chart moved itself if its own gesture is not older than this. */
const OWN_GESTURE_MS = 100;
const WIDE_BOX_PX = 4;
const TOP_PX = 12;

export interface PlotProps
  extends
    MovesProps,
    Pick<
      ChartFrameProps,
      | "bar"
      | "children"
      | "help"
      | "kind"
      | "label"
      | "subject"
      | "tableView"
      | "title"
      | "drawing"
    > {
  /** The pointer's row has a line, too; "cells": visible on every colour. */
  readonly cross?: boolean | "cells";
  readonly extent: XRange;
  readonly y: readonly [upper: number, lower: number];
  readonly plotPx: number;
  readonly topPx?: number;
  /** Below the axis, over the same x. */
  readonly stripPx?: number;
  /** Shared by charts that move together. */
  readonly cursor?: Signal<number | null> | undefined;
  readonly onSeen?: (seen: PlotSight) => void;
  /** A box was drawn; without it boxes have the plot's height. */
  readonly onBox?: (box: RectPx, seen: PlotSight) => void;
  readonly table: (view: Viewport) => Table;
  /** Content of files; default: `table`. */
  readonly fileTable?: () => Table;
  readonly origin: Origin;
  readonly about: () => Readonly<Record<string, unknown>>;
  /** Legend, with values at the cursor. */
  readonly names: (x: number | null) => readonly LegendEntry[];
  /** More of the legend in exports. */
  readonly pictured?: readonly LegendEntry[];
  readonly onToggle?: (index: number) => void;
  /** true (default): below the chart. */
  readonly legend?: boolean | "bar" | undefined;
  readonly under?: ComponentChildren;
}

export function Plot(props: PlotProps) {
  const { picture, rows, plotPx, topPx = TOP_PX, stripPx = 0, cross } = props;
  const { label, origin, page, legend = true } = props;
  const { theme, axis } = picture;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const widthPx = useWidth(box);
  const [asTable, setAsTable] = useWidgetFlag("as_table", label);
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
  const insetPx = SIDES.left + SIDES.right;
  const seen = useMemo<PlotSight>(
    () => ({
      view: { x0: low, x1: high, y0, y1 },
      size: { widthPx: Math.max(1, widthPx - insetPx), heightPx: plotPx },
      left: SIDES.left,
      top: topPx,
    }),
    [low, high, y0, y1, widthPx, plotPx, topPx],
  );
  const totalPx = topPx + plotPx + AXIS_PX + stripPx;
  const moves = movesOf(props, seen, extent, { cursor, hover, spoken, gestured });
  const now = useRef({ props, seen, moves });
  now.current = { props, seen, moves };
  const ready = widthPx > 0 && !asTable;
  const isFree = rows !== undefined;

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
      if (context !== null) paintPicture(context, seen, picture);
    };
    pace.ask(draw, isOwn || !moved);
  }, [picture, seen, totalPx, ready]);
  useEffect(() => () => pace.stop(), [pace]);
  useEffect(() => {
    if (!ready) return undefined;
    return effect(() => {
      const context = fitted(over.current, widthPx, totalPx);
      const [x, y, rect] = [cursor.value ?? NaN, hover.value?.y ?? NaN, drawing.value];
      if (context === null) return;
      const isTall = isFree || now.current.props.onBox !== undefined;
      const drawn = isTall || rect === null ? rect : { ...rect, y: 0, height: plotPx };
      const row = cross === undefined ? NaN : y;
      const onCells = cross === "cells";
      paintPointer(context, theme, seen, { x, row, box: drawn, stripPx, onCells });
    });
  }, [theme, cursor, seen, totalPx, ready]);
  useEffect(() => {
    const target = input.current;
    if (!ready || target === null) return undefined;
    return attachGestures(target, {
      origin: isFree ? { x: SIDES.left, y: topPx } : { x: 0, y: 0 },
      size: () => now.current.seen.size,
      view: () => now.current.moves.view,
      limits: () => now.current.moves.limits,
      wheelAxes: ({ x, y }) => {
        if (!isFree || y > now.current.seen.size.heightPx) return "x";
        return x < 0 ? "y" : "both";
      },
      dragAxes: isFree ? "both" : "x",
      onView: (view) => now.current.moves.setView(view),
      onFit: () => now.current.moves.fit(),
      onBox: (rect) => {
        drawing.value = rect;
      },
      onBoxDone: (next, rect) => {
        now.current.props.onBox?.(rect, now.current.seen);
        if (isFree || rect.width >= WIDE_BOX_PX) now.current.moves.setView(next);
      },
      onHover: (point) => now.current.moves.hoverAt(point),
      onClick: (point) => {
        plot.current?.focus({ preventScroll: true });
        now.current.moves.clickAt(point);
      },
    });
  }, [ready, isFree, topPx]);

  const table = () => props.table(seen.view);
  const source: ExportSource = {
    origin,
    table: props.fileTable ?? table,
    about: props.about,
    name: label,
    figure: () =>
      figureOf({
        theme,
        axisName: axis.name,
        title: figureTitle(label, origin),
        legend: [...props.names(null), ...(props.pictured ?? [])].filter(
          ({ isHidden }) => isHidden !== true,
        ),
        widthPx: seen.size.widthPx + insetPx,
        heightPx: totalPx,
        paint: (pen) => paintPicture(pen, seen, picture),
      }),
  };
  useCommands(page?.view.commands, moves.commands, [page?.group]);
  const names = (
    <CursorLegend names={props.names} cursor={cursor} onToggle={props.onToggle} />
  );
  return (
    <ChartFrame
      {...props}
      source={source}
      table={table}
      asTable={asTable}
      box={box}
      spoken={spoken}
      heightPx={totalPx}
      zoom={moves.zoom}
      fit={moves.fit}
      onKey={moves.onKey}
      shell={page?.view}
      onAsTable={setAsTable}
      axisName={axis.name}
      plotRef={plot}
      bar={
        <>
          {legend === "bar" && names}
          {props.bar}
        </>
      }
      legend={legend === true && names}
      plot={
        <>
          {props.under}
          <canvas ref={frame} />
          <canvas ref={over} />
          <div
            ref={input}
            class={`plot-input ${props.kind}-input`}
            style={
              isFree
                ? "inset: 0"
                : `inset: ${topPx}px ${SIDES.right}px 0 ${SIDES.left}px`
            }
          />
          <ReadingTip
            hover={hover}
            cursor={cursor}
            seen={seen}
            totalPx={totalPx}
            read={props.reader.read}
            beside={isFree}
          />
        </>
      }
    />
  );
}
