/** Owners have the range and the cursor: charts that share them move together. */

import { useMemo, useState } from "preact/hooks";
import type { Mark, Unit, XKind } from "../../api/types.gen";
import { counted, type ByteUnit } from "../../base/bytes";
import { useWidgetFlag, useWidgetTexts } from "../../base/widget_words";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks, X_AXES, type XAxis } from "../../model/lines/axis";
import { alignTo, mergeX, type Table, type TableColumn } from "../../model/table";
import { formatQuantity } from "../../model/words/quantity";
import type { PointPx } from "../../render/gestures";
import { pxToY, xToPx } from "../../render/viewport";
import { AXIS_PX, type Picture } from "../plot/axes";
import { IconButton } from "../icon/icon";
import type { LegendEntry } from "../plot/legend";
import { Plot, type PlotProps } from "../plot/plot";
import { widened, type XRange } from "../plot/range";
import {
  onColumns,
  type Reader,
  type PlotSight,
  type Reading,
  type ReadingNote,
  type ReadingRow,
} from "../plot/reader";
import { cursorRows, envelopeOf, nearestLine, pointAt, rowOf } from "./cursor";
import { MARK_WORDS } from "./marks";
import { paintLimitName, paintLines, paintMarks } from "./paint";
import { dashOf, lineColour } from "./palette";
import { BAND_ID, fitY, projectY, visibleLines, type ChartData } from "./frame";
import type { ChartBand, ChartFill, ChartLimit, ChartLine, ChartPick } from "./types";

const LINE_REACH_PX = 10;
const MARK_REACH_PX = 6;
const MOST_ROWS = 12;
const MOST_MARKS = 4;
/** Boxes at least this high also zoom the value axis. */
const TALL_BOX_PX = 16;
const TOP_PX = 10;
const NO_MARKS: readonly Mark[] = [];
const NO_FILLS: readonly ChartFill[] = [];

/** `extent`: of all data. Small charts have no `legend`; the tip stays. */
export interface LineChartProps extends Pick<
  PlotProps,
  | "children"
  | "cursor"
  | "extent"
  | "label"
  | "legend"
  | "onRange"
  | "origin"
  | "page"
  | "range"
  | "title"
> {
  readonly unit: Unit;
  readonly x: XKind | XAxis;
  readonly lines: readonly ChartLine[];
  readonly band?: ChartBand | null;
  readonly fills?: readonly ChartFill[];
  readonly marks?: readonly Mark[];
  readonly limit?: ChartLimit | null;
  /** Initial state of the switch; default yes. */
  readonly fromZero?: boolean;
  readonly theme: Theme;
  readonly byteUnit?: ByteUnit;
  readonly heightPx: number;
  readonly logScale?: boolean;
  /** Weight of the exponential moving average: 0 (off, default) to below 1. */
  readonly smoothing?: number;
  /** A click on a line, or on the band (then the highest rank at that x). */
  readonly onPick?: (pick: ChartPick) => void;
  /** Target of P, where more is known than is drawn. */
  readonly peak?: () => number | null;
}

export function LineChart(props: LineChartProps) {
  const { lines, unit, theme, byteUnit = "auto", marks = NO_MARKS, onPick } = props;
  const { band = null, limit = null, smoothing = 0, logScale = false } = props;
  const { fills = NO_FILLS } = props;
  const axis = typeof props.x === "string" ? X_AXES[props.x] : props.x;
  const [hiddenIds, setHiddenIds] = useWidgetTexts("hidden", props.label);
  const hidden = useMemo(() => new Set(hiddenIds), [hiddenIds.join(" ")]);
  const [isZeroTurned, turnZero] = useWidgetFlag("value_axis", props.label);
  const fromZero = (props.fromZero ?? true) !== isZeroTurned;
  const [yRange, setYRange] = useState<XRange | null>(null);
  const data = useMemo<ChartData>(
    () => ({ lines, band, limit, hidden, smoothing, fills }),
    [lines, band, limit, hidden, smoothing, fills],
  );
  const { low, high } = widened(props.range ?? props.extent);
  const fitted = useMemo(
    () => fitY(data, { low, high }, { logScale, fromZero }),
    [data, low, high, logScale, fromZero],
  );
  const y = yRange ?? fitted;
  const plotPx = props.heightPx - TOP_PX - AXIS_PX;
  const picture = useMemo<Picture>(
    () => ({
      axis,
      theme,
      grid: "both",
      yTicks: ({ y0, y1 }, most) => valueTicks(y1, y0, most, unit, byteUnit, logScale),
      toY: (value, seen) => projectY({ ...seen, logScale })(value),
      paint: (pen, seen) => {
        const frame = { ...seen, logScale };
        paintMarks(pen, frame, marks, theme);
        paintLines(pen, frame, data, theme);
        paintLimitName(pen, frame, data, theme);
      },
    }),
    [data, marks, axis, unit, byteUnit, logScale, theme],
  );
  const columns = useMemo(
    () => onColumns(() => envelopeOf(lines, band)),
    [lines, band],
  );
  const { link, bad } = tokens(theme);
  const text = (value: number): string => formatQuantity(value, unit, byteUnit);
  const lineLook = ({ colour }: ChartLine) => ({
    colour: lineColour(theme, colour),
    dash: dashOf(colour),
  });

  function names(cursorX: number | null): readonly LegendEntry[] {
    const bandItem = (of: ChartBand): LegendEntry => ({
      label: `${of.label}: median, p5–p95, min–max`,
      value: text(of.median[pointAt(of.x, cursorX ?? of.x.at(-1) ?? NaN)] ?? NaN),
      colour: link,
      dash: [],
      isBand: true,
      isHidden: hidden.has(BAND_ID),
    });
    const lineItem = (line: ChartLine): LegendEntry => ({
      label: line.label,
      note: line.note,
      value: text(
        cursorX === null ? (line.y.at(-1) ?? NaN) : rowOf(line, cursorX).value,
      ),
      ...lineLook(line),
      isHidden: hidden.has(line.id),
    });
    return [...(band === null ? [] : [bandItem(band)]), ...lines.map(lineItem)];
  }

  function read(x: number, point: PointPx, { view, size }: PlotSight): Reading {
    const sorted = cursorRows(visibleLines(data), x);
    const near = marks.filter(
      (mark) => Math.abs(xToPx(view, size.widthPx, mark.x) - point.x) <= MARK_REACH_PX,
    );
    const notes = near.slice(0, MOST_MARKS).map(markWords);
    if (near.length > MOST_MARKS)
      notes.push(`and ${counted(near.length - MOST_MARKS, "more mark")}`);
    const rows = sorted.slice(0, MOST_ROWS).map(({ line, value, low: least }) => ({
      name: line.label,
      note: line.note,
      value: text(value),
      swatch: lineLook(line),
      ...(least < value ? { exact: `from ${text(least)}` } : {}),
    }));
    const numLower = sorted.length - rows.length;
    const foot: readonly ReadingNote[] =
      numLower > 0
        ? [{ text: `and ${counted(numLower, "lower line")}`, class: "quiet" }]
        : [];
    const values = sorted.map(({ value }) => value);
    const isDrawn = band !== null && !hidden.has(BAND_ID);
    const above = isDrawn ? bandRows(band, x, text, values) : [];
    return { title: axis.text(x), notes, rows: [...above, ...rows], foot };
  }
  function pick(x: number, point: PointPx, seen: PlotSight): void {
    const visible = visibleLines(data);
    const toY = projectY({ ...seen, logScale });
    const [top] = cursorRows(visible, x);
    // Keys mean the highest line; a single line is hit wherever the click was.
    const yPx = Number.isNaN(point.y) ? toY(top?.value ?? NaN) : point.y;
    const isOnly = visible.length === 1 && band === null;
    const hit = nearestLine(visible, x, yPx, toY, isOnly ? Infinity : LINE_REACH_PX);
    const rank = band?.highRank[pointAt(band.x, x)];
    if (hit !== null) onPick?.({ kind: "line", id: hit.id, x });
    else if (rank !== undefined) onPick?.({ kind: "band", rank, x });
  }
  const reader: Reader = { ...columns, read, pick, peak: props.peak };

  const from = axis.text(props.extent.low);
  const bandText = band === null ? "" : `a band over ${band.label} and `;
  return (
    <Plot
      {...props}
      picture={picture}
      reader={reader}
      plotPx={plotPx}
      names={names}
      kind="line-chart"
      subject={props.label}
      cross
      y={[y.high, y.low]}
      topPx={TOP_PX}
      onBox={({ y: top, height }, { view, size }) => {
        if (height < TALL_BOX_PX || logScale) return;
        const [upper, lower] = [top, top + height].map((px) =>
          pxToY(view, size.heightPx, px),
        );
        setYRange({ low: lower ?? NaN, high: upper ?? NaN });
      }}
      onFit={() => setYRange(null)}
      table={({ x0, x1 }) =>
        chartTable(axis.column, unit, visibleLines(data), band, { low: x0, high: x1 })
      }
      about={() => ({ label: props.label, unit, x: axis.column, marks })}
      // On the plot its name is beside its line.
      pictured={
        limit === null ? [] : [{ label: limit.label, colour: bad, dash: [7, 4] }]
      }
      onToggle={(i) => {
        const ids = [...(band === null ? [] : [BAND_ID]), ...lines.map(({ id }) => id)];
        const next = new Set(hidden);
        if (!next.delete(ids[i] ?? "")) next.add(ids[i] ?? "");
        setHiddenIds([...next]);
      }}
      bar={
        <IconButton
          label={fromZero ? "Fit the value axis to the data" : "Start values at zero"}
          icon="zero"
          pressed={fromZero}
          onClick={() => {
            setYRange(null);
            turnZero(!isZeroTurned);
          }}
        />
      }
      help={`${props.label}: ${bandText}${counted(lines.length, "line")}, ${from} to ${axis.text(props.extent.high)}. Arrow keys read values, Enter chooses the highest, P goes to the peak, brackets to the next one, W and S zoom, A and D pan, F shows everything.`}
    />
  );
}

function markWords({ kind, rank, label }: Mark): ReadingNote {
  const text = `${MARK_WORDS[kind] ?? kind}${rank === null ? "" : ` on rank ${rank}`}${label === "" ? "" : `: ${label}`}`;
  const isWarning = kind === "retry" || kind === "dropped";
  return { text, class: kind === "oom" ? "bad" : isWarning ? "warn" : "quiet" };
}

/** Key, name in files, name at the cursor. */
const BAND = [
  ["low", "min", "lowest"],
  ["p5", "p5", "5 % of ranks below"],
  ["median", "median", "median"],
  ["p95", "p95", "95 % of ranks below"],
  ["high", "max", "highest"],
] as const;

/** Without the highest where a line shows the same value. */
function bandRows(
  band: ChartBand,
  x: number,
  text: (value: number) => string,
  lineValues: readonly number[],
): readonly ReadingRow[] {
  const i = pointAt(band.x, x);
  if (i < 0) return [];
  const rank = band.highRank[i];
  const rows = BAND.map(([key, , name]) => ({
    name: key === "high" && rank !== undefined ? `${name} (rank ${rank})` : name,
    value: text(band[key][i] ?? NaN),
  }));
  return rows.reverse().slice(lineValues.includes(band.high[i] ?? NaN) ? 1 : 0);
}

/** A row per x in view, columns for lines and band. */
export function chartTable(
  x: string,
  unit: Unit,
  lines: readonly ChartLine[],
  band: ChartBand | null,
  { low, high }: XRange,
): Table {
  const all = [...lines, ...(band === null ? [] : [band])];
  // More is fetched than is shown.
  const merged = mergeX(all.map((of) => of.x)).filter(
    (value) => value >= low && value <= high,
  );
  const columns: TableColumn[] = [{ name: x, values: merged }];
  const add = (name: string, of: Float64Array, y: ArrayLike<number>): void => {
    columns.push({ name, values: alignTo(merged, of, Float64Array.from(y)) });
  };
  if (band !== null) {
    for (const [key, name] of BAND) add(`${name} (${unit})`, band.x, band[key]);
    if (band.highRank.length > 0) add("rank of max", band.x, band.highRank);
  }
  for (const { label, x: of, y, yLow } of lines) {
    add(`${label} (${unit})`, of, y);
    if (yLow !== y) add(`${label} low (${unit})`, of, yLow);
  }
  return { columns, numRows: merged.length };
}
