/**
 * Arrays are columns of equal length; x is ascending and finite; NaN in y: not recorded
 * (a gap, never zero).
 */

import type { TimelineResponse } from "../../api/types.gen";

export interface ChartLine {
  /** Stable across refetches: visibility and colour go by it. */
  readonly id: string;
  readonly label: string;
  readonly x: Float64Array;
  /** Highest of each merged group of rows. */
  readonly y: Float64Array;
  /** Lowest of each merged group; the same array as `y` where nothing was merged. */
  readonly yLow: Float64Array;
  /** Index into the palette (wraps), or a CSS colour. */
  readonly colour: number | string;
  /** Strong: wider, and drawn last; default normal. */
  readonly weight?: "normal" | "strong";
  /** After the label in the legend, such as "pinned". */
  readonly note?: string;
  /** Each value is valid until the next point. */
  readonly isStepped?: boolean;
}

/** Spread over many ranks; `label` such as "4,096 ranks". */
export type ChartBand = Omit<NonNullable<TimelineResponse["band"]>, "numRanks"> & {
  readonly label: string;
};

export interface ChartFill {
  readonly x: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly colour: string;
}

/** In the y range where data come near; otherwise named at the upper edge. */
export interface ChartLimit {
  readonly value: number;
  readonly label: string;
}

export type ChartPick =
  | { readonly kind: "line"; readonly id: string; readonly x: number }
  | { readonly kind: "band"; readonly rank: number; readonly x: number };
