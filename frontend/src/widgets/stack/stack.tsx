import { useMemo, useState } from "preact/hooks";
import type { Unit } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import { upperBound } from "../../model/lines/polyline";
import type { Table, TableColumn } from "../../model/table";
import { formatQuantity } from "../../model/words/quantity";
import type { PointPx } from "../../render/gestures";
import { type Viewport, type SizePx, xToPx, yToPx } from "../../render/viewport";
import type { Pen } from "../export/pen";
import type { Picture } from "../plot/axes";
import { ChartSwitch } from "../plot/chart_frame";
import type { LegendEntry } from "../plot/legend";
import { Plot, type PlotProps } from "../plot/plot";
import { onColumns, type Reader, type PlotSight, type Reading } from "../plot/reader";

interface StackLayer extends LegendEntry {
  readonly name: string;
  readonly values: Float64Array;
}

export interface StackData {
  /** One more than there are columns. */
  readonly edges: ArrayLike<number>;
  /** x at which each column is read. */
  readonly columnX: Float64Array;
  readonly totals: Float64Array;
  /** Others may be cut; default all. */
  readonly isCounted?: (column: number) => boolean;
  /** From the bottom up. */
  readonly layers: readonly StackLayer[];
}

interface StackProps
  extends
    Omit<
      PlotProps,
      "names" | "onFit" | "onSeen" | "picture" | "reader" | "rows" | "table" | "y"
    >,
    Pick<Picture, "axis" | "theme">,
    Required<Pick<Picture, "over">>,
    Pick<Reader, "pick" | "stops"> {
  readonly data: StackData;
  readonly unit: Unit;
  readonly byteUnit?: ByteUnit;
  readonly total: string;
  readonly exact: (value: number, total: number) => string;
  /** The rest of the tip; column -1: none at x. */
  readonly reading: (
    x: number,
    point: PointPx,
    column: number,
    seen: PlotSight,
  ) => Reading;
  readonly look: BandLook;
  /** The cursor is not limited to columns. */
  readonly isFree?: boolean;
  /** Cut columns that are far higher than the others. */
  readonly isCut?: boolean;
  readonly columns?: readonly TableColumn[];
}

export function Stack(props: StackProps) {
  const { data, axis, unit, byteUnit = "auto", theme, over, look } = props;
  const { isCut = false } = props;
  const [isWhole, setWhole] = useState(false);
  const { low, high } = props.range ?? props.extent;
  const top = useMemo(
    () => topOf(data, low, high, isCut && !isWhole),
    [data, low, high, isCut, isWhole],
  );
  const picture = useMemo<Picture>(
    () => ({
      axis,
      theme,
      over,
      grid: "y",
      yTicks: ({ y0 }, most) => valueTicks(0, y0, most, unit, byteUnit),
      paint: (pen, { view, size }) => paintBands(pen, data, look, view, size, theme),
    }),
    [data, axis, unit, byteUnit, theme, over, look],
  );
  const cursor = useMemo(() => {
    const on = onColumns(() => ({ x: data.columnX, y: data.totals }));
    const centre = (x: number) => data.columnX[columnAt(data, x)] ?? null;
    return { ...on, snap: props.isFree === true ? (x: number) => x : centre };
  }, [data, props.isFree]);

  function read(x: number, point: PointPx, seen: PlotSight): Reading {
    const column = columnAt(data, x);
    const reading = props.reading(x, point, column, seen);
    if (column < 0) return reading;
    const total = data.totals[column] ?? NaN;
    const row = (name: string, value: number) => ({
      name,
      value: formatQuantity(value, unit, byteUnit),
      exact: props.exact(value, total),
    });
    const rows = data.layers
      .map(({ label, values, colour }) => ({
        label,
        colour,
        value: values[column] ?? NaN,
      }))
      .filter(({ value }) => value > 0)
      .map(({ label, colour, value }) => ({
        ...row(label, value),
        swatch: { colour },
      }));
    return { ...reading, rows: [row(props.total, total), ...rows.reverse()] };
  }
  const { pick, stops } = props;
  const reader: Reader = { ...cursor, read, pick, stops };
  return (
    <Plot
      {...props}
      picture={picture}
      reader={reader}
      y={[top.value, 0]}
      table={(view) => stackTable(props, view)}
      names={() => data.layers}
      bar={
        <>
          {props.bar}
          {(top.cut || isWhole) && (
            <ChartSwitch
              hint="Some columns are far higher than the others; they are marked at the upper edge"
              onClick={() => setWhole(!isWhole)}
            >
              {isWhole ? "cut the highest" : "show full height"}
            </ChartSwitch>
          )}
        </>
      }
    />
  );
}

/** -1: none. */
export function columnAt({ edges }: Pick<StackData, "edges">, x: number): number {
  const num = edges.length - 1;
  if (num < 1 || !(x >= (edges[0] ?? NaN)) || !(x < (edges[num] ?? NaN))) return -1;
  return upperBound(edges, x) - 1;
}

/** Also those partly inside. */
export function columnsWithin(
  { edges }: Pick<StackData, "edges">,
  low: number,
  high: number,
): readonly number[] {
  const columns: number[] = [];
  for (let c = 0; c + 1 < edges.length; c += 1) {
    if ((edges[c + 1] ?? NaN) > low && (edges[c] ?? NaN) < high) columns.push(c);
  }
  return columns;
}

const HEADROOM = 1.08;
/** Above WILD times the 95th percentile the plot ends at CUT_AT times it. */
const WILD = 4;
const CUT_AT = 2.5;

/** `cut`: columns reach beyond the upper edge. */
export function topOf(
  data: Pick<StackData, "edges" | "isCounted" | "totals">,
  low: number,
  high: number,
  isCut: boolean,
): { readonly value: number; readonly cut: boolean } {
  const { totals, isCounted } = data;
  const all = columnsWithin(data, low, high).filter((c) => (totals[c] ?? NaN) > 0);
  const counted = all.filter((c) => !isCut || isCounted?.(c) !== false);
  const values = (counted.length > 0 ? counted : all)
    .map((c) => totals[c] ?? NaN)
    .sort((a, b) => a - b);
  const most = values.at(-1);
  if (most === undefined) return { value: 1, cut: false };
  const usual = values[Math.floor((values.length - 1) * 0.95)] ?? most;
  const value = isCut && most > WILD * usual ? CUT_AT * usual : most * HEADROOM;
  return { value, cut: all.some((c) => (totals[c] ?? NaN) > value) };
}

/** A row per column in view, with every digit. */
export function stackTable(
  of: Pick<StackProps, "axis" | "columns" | "data" | "total" | "unit">,
  view: Viewport,
): Table {
  const { axis, data, total, unit, columns = [] } = of;
  const shown = columnsWithin(data, view.x0, view.x1);
  const own = { name: axis.column, values: data.columnX };
  const sum = { name: `${total} (${unit})`, values: data.totals };
  const parts = data.layers.map(({ name, values }) => ({
    name: `${name} (${unit})`,
    values,
  }));
  const isNamed = columns.some(({ name }) => name === own.name);
  const all = [...(isNamed ? [] : [own]), ...columns, sum, ...parts];
  return {
    numRows: shown.length,
    columns: all.map(({ name, values }) => ({
      name,
      values: shown.map((column) => Number(values[column] ?? NaN)),
    })),
  };
}

/** `edges`: one more than there are columns. */
export interface Bands {
  readonly edges: ArrayLike<number>;
  /** From the bottom up; values of 0 or less take no room. */
  readonly layers: readonly {
    readonly values: ArrayLike<number>;
    readonly colour: string;
  }[];
}

export interface BandLook {
  /** Layers this thick have an upper edge in the background's colour. */
  readonly edgedPx: number;
  /** Narrower columns have no such edges: they would be specks. */
  readonly linedPx: number;
  /** Columns this wide have a gap. */
  readonly apartPx: number;
}

/** Whole px, so that columns meet; at least one, so that nothing thin vanishes. */
function span(a: number, b: number, mostPx: number): readonly [number, number] {
  const start = Math.min(Math.max(Math.round(Math.min(a, b)), 0), mostPx - 1);
  const end = Math.min(Math.round(Math.max(a, b)), mostPx);
  return [start, Math.max(end - start, 1)];
}

/** Px of the plot. */
export function paintBands(
  pen: Pen,
  { edges, layers }: Bands,
  look: BandLook,
  view: Viewport,
  { widthPx, heightPx }: SizePx,
  theme: Theme,
): void {
  const base = new Float64Array(Math.max(0, edges.length - 1));
  const lines: [number, number, number][] = [];
  for (const { values, colour } of layers) {
    pen.beginPath();
    let [left, top, wide, tall] = [0, 0, 0, 0];
    const draw = (): void => {
      if (wide > 0) pen.rect(left, top, wide, tall);
    };
    for (let column = 0; column < base.length; column += 1) {
      const value = values[column] ?? NaN;
      if (!(value > 0)) continue;
      const low = base[column] ?? 0;
      base[column] = low + value;
      const [begin, end] = [edges[column] ?? NaN, edges[column + 1] ?? NaN];
      if (!(end > view.x0 && begin < view.x1) || low > view.y0) continue;
      const [x0, x1] = [xToPx(view, widthPx, begin), xToPx(view, widthPx, end)];
      const [x, across] = span(x0, x1, widthPx);
      const apart = x1 - x0 >= look.apartPx ? 1 : 0;
      const upper = yToPx(view, heightPx, low + value);
      const lower = yToPx(view, heightPx, low);
      const [y, high] = span(upper, lower, heightPx);
      const room = Math.max(across - apart, 1);
      // Neighbours of one height become one rectangle.
      if (wide > 0 && x === left + wide && y === top && high === tall) wide += room;
      else {
        draw();
        [left, top, wide, tall] = [x, y, room, high];
      }
      const isThick = lower - upper >= look.edgedPx;
      if (isThick && x1 - x0 >= look.linedPx) lines.push([x, y, room]);
    }
    draw();
    pen.fillStyle = colour;
    pen.fill();
  }
  pen.beginPath();
  for (const [x, y, wide] of lines) pen.rect(x, y, wide, 1);
  pen.fillStyle = tokens(theme).bg;
  pen.fill();
}
