/**
 * The line chart: bands, lines and marks over steps or time. The owner holds the range
 * and the cursor, so charts that share them move together.
 */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Mark } from "../../api/types.gen";
import { tokens } from "../../base/tokens";
import { X_LABEL, xText } from "../../model/lines/axis";
import { formatQuantity } from "../../model/words/quantity";
import type { PointPx } from "../../render/gestures";
import { strokeLine } from "../export/figure";
import { paintPointer } from "../plot/axes";
import { NOTHING_SEEN, PlotFrame, type PlotPainter, type Seen } from "../plot/frame";
import { ChartButton } from "./chart_button";
import { bandRow, cursorRows, nearestLine, snapX, stepX } from "./cursor";
import { chartTable } from "./data_table";
import { Legend } from "./legend";
import { ChartOverlay } from "./overlay";
import { frameOf, GUTTER, legendOf, paintChart, type ChartLook } from "./paint";
import { fitY, projectX, projectY, rangeUnder, visibleLines } from "./shapes";
import type { ChartData } from "./shapes";
import type { LineChartProps, XRange } from "./types";

/** The least that can be zoomed into: two steps, or 20 ms. */
const LEAST_STEPS = 2;
const LEAST_MS = 20;
const LINE_REACH_PX = 10;
/** A box at least this high also zooms the value axis. */
const TALL_BOX_PX = 16;
const NO_MARKS: readonly Mark[] = [];

interface Look extends ChartLook {
  readonly cursor: ReadonlySignal<number | null>;
  readonly hover: ReadonlySignal<PointPx | null>;
}

const PAINTER: PlotPainter<Look> = {
  frame: (pen, look, { size }) => paintChart(pen, look, size),
  over: (pen, look, { size }, box) => {
    const { left, top } = GUTTER;
    const x = projectX(frameOf(look, size))(look.cursor.value ?? NaN);
    const y = look.hover.value?.y ?? NaN;
    const inside = x >= 0 && x <= size.widthPx;
    const bottom = top + size.heightPx;
    const line = inside ? { x: left + x, top, bottom } : null;
    paintPointer(pen, look.theme, line, box);
    if (!inside || !(y >= 0 && y <= size.heightPx)) return;
    pen.strokeStyle = tokens(look.theme).secondary;
    strokeLine(pen, left, top + y, left + size.widthPx, top + y);
  },
};

/** What has no width is shown in the middle of some. */
function widened(extent: XRange): XRange {
  if (extent.high > extent.low) return extent;
  return { low: extent.low - 0.5, high: extent.low + 0.5 };
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
  const { lines, cursor, unit, theme, byteUnit = "auto", marks = NO_MARKS } = props;
  const { band = null, limit = null, smoothing = 0, logScale = false } = props;
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [fromZero, setFromZero] = useState(props.fromZero ?? true);
  const [yRange, setYRange] = useState<XRange | null>(null);
  const hover = useSignal<PointPx | null>(null);
  const spoken = useSignal("");
  const seen = useRef<Seen>(NOTHING_SEEN);
  const data = useMemo<ChartData>(
    () => ({ lines, band, limit, hidden, smoothing }),
    [lines, band, limit, hidden, smoothing],
  );
  const { low, high } = widened(props.range ?? props.extent);
  const look = useMemo<Look>(() => {
    const x = { low, high };
    const y = yRange ?? fitY(data, x, { logScale, fromZero });
    const scale = { x, y, xKind: props.x, unit, byteUnit, logScale };
    return { ...scale, data, theme, marks, cursor, hover };
  }, [
    ...[low, high, yRange, data, logScale, fromZero, props.x, unit, byteUnit],
    ...[theme, marks, cursor, hover],
  ]);
  const frame = () => frameOf(look, seen.current.size);
  const xAt = (px: number): number =>
    low + (px / seen.current.size.widthPx) * (high - low);

  function pickAt(x: number, yPx: number): void {
    const toY = projectY(frame());
    const visible = visibleLines(data);
    // The only line is meant wherever the click was.
    const only = visible.length === 1 && band === null;
    const hit = nearestLine(visible, x, yPx, toY, only ? Infinity : LINE_REACH_PX);
    if (hit !== null) {
      props.onPick?.({ kind: "line", id: hit.id, x });
      return;
    }
    const rank = (band === null ? null : bandRow(band, x))?.highRank ?? null;
    if (rank !== null) props.onPick?.({ kind: "band", rank, x });
  }

  function moveCursor(count: number): void {
    const from = cursor.peek() ?? (low + high) / 2;
    const x = stepX(lines, band, from, count);
    cursor.value = x;
    const [top] = cursorRows(lines, x);
    const median = band === null ? null : bandRow(band, x);
    const words = [xText(x, props.x)];
    if (median !== null) words.push(`median ${formatQuantity(median.median, unit)}`);
    if (top !== undefined) {
      words.push(`highest ${top.label} ${formatQuantity(top.value, unit)}`);
    }
    spoken.value = words.join(", ");
  }

  function onKey(event: KeyboardEvent): boolean {
    const stepping = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowRight") moveCursor(stepping);
    else if (event.key === "ArrowLeft") moveCursor(-stepping);
    else if (event.key === "Escape") cursor.value = null;
    else if (event.key === "Enter") {
      const at = cursor.peek();
      const [top] = at === null ? [] : cursorRows(lines, at);
      if (at !== null) pickAt(at, projectY(frame())(top?.value ?? NaN));
    } else return false;
    return true;
  }

  return (
    <PlotFrame
      kind="line-chart"
      label={props.label}
      title={props.title ?? props.label}
      axisName={X_LABEL[props.x]}
      subject={props.label}
      look={look}
      painter={PAINTER}
      extent={props.extent}
      range={props.range}
      onRange={props.onRange}
      leastX={props.x === "step" ? LEAST_STEPS : LEAST_MS}
      y0={look.y.high}
      y1={look.y.low}
      gutter={GUTTER}
      plotPx={props.heightPx - GUTTER.top - GUTTER.bottom}
      totalPx={props.heightPx}
      seen={seen}
      onHover={(at) => {
        hover.value = at;
        cursor.value = at === null ? null : snapX(lines, band, xAt(at.x));
      }}
      onClick={(at) => pickAt(xAt(at.x), at.y)}
      onBox={(rect) => {
        const tall = rect.height >= TALL_BOX_PX && !logScale;
        if (tall) setYRange(rangeUnder(frame(), rect));
      }}
      onFit={() => setYRange(null)}
      onKey={onKey}
      table={({ x0, x1 }) =>
        chartTable(props.x, unit, visibleLines(data), band, { low: x0, high: x1 })
      }
      origin={props.origin}
      about={() => ({ label: props.label, unit, x: props.x, marks })}
      names={legendOf(look)}
      exporter={props.exporter}
      bar={
        <ChartButton
          label={fromZero ? "Fit the value axis to the data" : "Start values at zero"}
          icon="zero"
          pressed={fromZero}
          onClick={() => {
            setYRange(null);
            setFromZero(!fromZero);
          }}
        />
      }
      tip={({ size }) => (
        <ChartOverlay hover={hover} cursor={cursor} look={look} size={size} />
      )}
      legend={
        props.legend !== false && (
          <Legend
            lines={lines}
            band={band}
            cursor={cursor}
            hidden={hidden}
            unit={unit}
            byteUnit={byteUnit}
            theme={theme}
            onToggle={(id) => {
              const next = new Set(hidden);
              if (!next.delete(id)) next.add(id);
              setHidden(next);
            }}
          />
        )
      }
      help={`${summary(props)} Arrow keys read values, W and S zoom, A and D pan, F shows everything.`}
      spoken={spoken}
    >
      {props.children}
    </PlotFrame>
  );
}
