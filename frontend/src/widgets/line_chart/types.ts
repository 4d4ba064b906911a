/**
 * The props of the line chart. Arrays are columns: equal length, x ascending and
 * finite, NaN in y where nothing was recorded (drawn as a gap, never as zero).
 */

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Mark, Unit, XKind } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { Origin } from "../../model/words/origin";
import type { ExportSource } from "../export/source";

/** A closed range in units of x (steps, or milliseconds). */
export interface XRange {
  readonly low: number;
  readonly high: number;
}

export interface ChartLine {
  /** Stable across refetches: it keeps visibility and colour. */
  readonly id: string;
  /** Shown in the legend and the table; any text. */
  readonly label: string;
  readonly x: Float64Array;
  /** Where rows were merged for the width: the highest of each merged group. */
  readonly y: Float64Array;
  /** The lowest of each merged group; pass `y` again where nothing was merged. */
  readonly yLow: Float64Array;
  /** Index into the line palette (wraps); lines alike on two charts share it. */
  readonly colour: number;
  /** A strong line is 2 px wide and drawn last; default normal. */
  readonly weight?: "normal" | "strong";
  /** A second channel beside colour, e.g. for outliers; default solid. */
  readonly dash?: "solid" | "dashed" | "dotted";
  /** Said after the label in the legend, e.g. "pinned". */
  readonly note?: string;
}

/** The spread over many ranks. */
export interface ChartBand {
  /** E.g. "4,096 ranks". */
  readonly label: string;
  readonly x: Float64Array;
  readonly low: Float64Array;
  readonly p5: Float64Array;
  readonly median: Float64Array;
  readonly p95: Float64Array;
  readonly high: Float64Array;
  /** Which rank is the highest at each x; empty where that is not known. */
  readonly highRank: Int32Array;
}

/**
 * A horizontal line such as the capacity, drawn dashed. It is part of the y range where
 * the data come near it, and otherwise named at the upper edge.
 */
export interface ChartLimit {
  readonly value: number;
  readonly label: string;
}

export interface LineChartProps {
  /** What is drawn, for the heading of the legend and for screen readers. */
  readonly label: string;
  readonly unit: Unit;
  readonly x: XKind;
  readonly lines: readonly ChartLine[];
  readonly band?: ChartBand | null;
  readonly marks?: readonly Mark[];
  readonly limit?: ChartLimit | null;
  /** The full extent of the data, whatever part `lines` holds. */
  readonly extent: XRange;
  /** The part shown; null shows the whole extent and follows it as it grows. */
  readonly range: XRange | null;
  /** Whether values start at zero until the user says otherwise; default yes. */
  readonly fromZero?: boolean;
  /** Called while the user zooms or pans (once a frame at most); null = fit. */
  readonly onRange: (range: XRange | null) => void;
  /** x under the pointer, shared by the charts that should move together. */
  readonly cursor: Signal<number | null>;
  readonly theme: Theme;
  /** The unit switch of the top strip; default auto. */
  readonly byteUnit?: ByteUnit;
  readonly heightPx: number;
  readonly logScale?: boolean;
  /** Weight of the exponential moving average, 0 (off, default) to below 1. */
  readonly smoothing?: number;
  /** Click on a line, or on the band (then the rank highest at that x). */
  readonly onPick?: (pick: ChartPick) => void;
  /** Small charts leave out the legend below and keep the tooltip. */
  readonly legend?: boolean;
  /** Heading at the left of the chart's tool bar; default `label`. */
  readonly title?: string;
  /** Stands between the plot and the legend, e.g. a minimap. */
  readonly children?: ComponentChildren;
  /** Filled with what the chart's export menu writes, for menus elsewhere. */
  readonly exporter?: { current: ExportSource | null };
  /** Said by exported files and pictures. */
  readonly origin: Origin;
}

export type ChartPick =
  | { readonly kind: "line"; readonly id: string; readonly x: number }
  | { readonly kind: "band"; readonly rank: number; readonly x: number };
