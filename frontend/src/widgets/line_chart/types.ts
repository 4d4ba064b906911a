/**
 * What the line chart draws. Arrays are columns: equal length, x ascending and finite,
 * NaN in y where nothing was recorded (drawn as a gap, never as zero).
 */

import type { TimelineResponse } from "../../api/types.gen";

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
  readonly colour: number | string;
  /** A strong line is 2 px wide and drawn last; default normal. */
  readonly weight?: "normal" | "strong";
  /** A second channel beside colour, e.g. for outliers; default solid. */
  readonly dash?: "solid" | "dashed" | "dotted";
  /** Said after the label in the legend, e.g. "pinned". */
  readonly note?: string;
  /** Each value holds until the next point. */
  readonly isStepped?: boolean;
}

/** The spread over many ranks; `label` is such as "4,096 ranks". */
export type ChartBand = Omit<NonNullable<TimelineResponse["band"]>, "numRanks"> & {
  readonly label: string;
};

/** What lies between two columns. */
export interface ChartFill {
  readonly x: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly colour: string;
}

/**
 * A horizontal line such as the capacity, drawn dashed. It is part of the y range where
 * the data come near it, and otherwise named at the upper edge.
 */
export interface ChartLimit {
  readonly value: number;
  readonly label: string;
}

export type ChartPick =
  | { readonly kind: "line"; readonly id: string; readonly x: number }
  | { readonly kind: "band"; readonly rank: number; readonly x: number };
