import { useMemo, useState } from "preact/hooks";
import type { Unit } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { valueTicks } from "../../model/lines/axis";
import { upperBound } from "../../model/lines/polyline";
import type { Table, TableColumn } from "../../model/table";
import { formatQuantity } from "../../model/words/quantity";
import type { PointPx } from "../../render/gestures";
import type { Viewport } from "../../render/viewport";
import type { Picture } from "../plot/axes";
import { ChartSwitch } from "../plot/chart_frame";
import type { Named } from "../plot/legend";
import { Plot, type PlotProps } from "../plot/plot";
import { onColumns, type Reader, type Seen } from "../plot/reader";
import type { Reading } from "../plot/reading";
import { paintBands, type BandLook } from "./bands";

interface StackLayer extends Named {
  readonly name: string;
  readonly values: Float64Array;
}

export interface StackData {
  /** One more than there are columns. */
  readonly edges: ArrayLike<number>;
  /** x at which each column is read. */
  readonly at: Float64Array;
  readonly totals: Float64Array;
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
  readonly words: (x: number, at: PointPx, column: number, seen: Seen) => Reading;
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
      ...{ axis, theme, over, grid: "y" },
      yTicks: ({ y0 }, most) => valueTicks(0, y0, most, unit, byteUnit),
      paint: (pen, { view, size }) => paintBands(pen, data, look, view, size, theme),
    }),
    [data, axis, unit, byteUnit, theme, over, look],
  );
  const cursor = useMemo(() => {
    const on = onColumns(() => ({ x: data.at, y: data.totals }));
    const centre = (x: number) => data.at[columnAt(data, x)] ?? null;
    return { ...on, snap: props.isFree === true ? (x: number) => x : centre };
  }, [data, props.isFree]);

  function read(x: number, at: PointPx, seen: Seen): Reading {
    const column = columnAt(data, x);
    const words = props.words(x, at, column, seen);
    if (column < 0) return words;
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
    return { ...words, rows: [row(props.total, total), ...rows.reverse()] };
  }
  const reader: Reader = {
    ...{ ...cursor, read },
    ...(props.pick === undefined ? {} : { pick: props.pick }),
    ...(props.stops === undefined ? {} : { stops: props.stops }),
  };
  return (
    <Plot
      {...props}
      {...{ picture, reader }}
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
  const found: number[] = [];
  for (let c = 0; c + 1 < edges.length; c += 1) {
    if ((edges[c + 1] ?? NaN) > low && (edges[c] ?? NaN) < high) found.push(c);
  }
  return found;
}

const HEADROOM = 1.08;
/** Above WILD times the 95th percentile the plot ends at CUT_AT times it. */
const WILD = 4;
const CUT_AT = 2.5;

/** `cut`: columns reach beyond the upper edge. */
export function topOf(
  data: Pick<StackData, "edges" | "totals">,
  low: number,
  high: number,
  isCut: boolean,
): { readonly value: number; readonly cut: boolean } {
  const values = columnsWithin(data, low, high)
    .map((c) => data.totals[c] ?? NaN)
    .filter((value) => value > 0)
    .sort((a, b) => a - b);
  const most = values.at(-1);
  if (most === undefined) return { value: 1, cut: false };
  const usual = values[Math.floor((values.length - 1) * 0.95)] ?? most;
  if (isCut && most > WILD * usual) return { value: CUT_AT * usual, cut: true };
  return { value: most * HEADROOM, cut: false };
}

/** A row per column in view, with every digit. */
export function stackTable(
  of: Pick<StackProps, "axis" | "columns" | "data" | "total" | "unit">,
  view: Viewport,
): Table {
  const { axis, data, total, unit, columns = [] } = of;
  const shown = columnsWithin(data, view.x0, view.x1);
  const own = { name: axis.column, values: data.at };
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
