/**
 * A cell of step s covers s - 1/2 to s + 1/2; y is a rank's place among those drawn.
 */

import type { HeatmapResponse } from "../../api/types.gen";
import { formatRankSet } from "../../model/words/rank_set";
import { lowerBound } from "../../model/lines/polyline";
import { cellValue } from "../../render/palette";
import type { Layer } from "../../render/raster/scene";
import type { SizePx, Viewport } from "../../render/viewport";
import type { XRange } from "../plot/range";
import { AXIS_PX } from "../plot/axes";

export const TOP_PX = 6;
export const AROUND_PX = TOP_PX + AXIS_PX;

/** Request for an answer that is sharp in the current view. */
export interface HeatmapNeed {
  /** null: all. */
  readonly steps: XRange | null;
  readonly px: number;
  readonly rows: number;
  /** As text; null: all. */
  readonly ranks: string | null;
}

export function worldOf(overview: HeatmapResponse, numRanks: number): Viewport {
  return {
    x0: overview.xLow - 0.5,
    x1: overview.xHigh + 0.5,
    y0: 0,
    y1: Math.max(1, numRanks),
  };
}

export function layerOf(answer: HeatmapResponse, ranks: Int32Array): Layer {
  const grid = {
    values: answer.values,
    columns: answer.numColumns,
    rows: answer.numRows,
    x0: answer.x0 - 0.5,
    columnWidth: answer.stepsPerColumn,
    y0: lowerBound(ranks, answer.rowRank[0] ?? 0),
    rowHeight: answer.ranksPerRow,
  };
  return { kind: "grid", grid };
}

export interface CellFacts {
  /** NaN: not recorded. */
  readonly value: number;
  /** Cells are quantised: the value is exact to within this. */
  readonly tolerance: number;
  readonly firstStep: number;
  readonly lastStep: number;
  readonly firstRank: number;
  readonly lastRank: number;
}

export function factsOf(
  answer: HeatmapResponse,
  ranks: Int32Array,
  cell: number,
): CellFacts {
  const { numColumns, values } = answer;
  const { valueLow, valueHigh, stepsPerColumn, ranksPerRow } = answer;
  const firstStep = answer.x0 + (cell % numColumns) * stepsPerColumn;
  const firstRank = answer.rowRank[Math.floor(cell / numColumns)] ?? 0;
  const lastPlace = lowerBound(ranks, firstRank) + ranksPerRow - 1;
  return {
    value: cellValue(values[cell] ?? 0, valueLow, valueHigh),
    tolerance: (valueHigh - valueLow) / 65534 / 2,
    firstStep: Math.ceil(firstStep),
    lastStep: Math.min(
      Math.max(Math.ceil(firstStep + stepsPerColumn) - 1, Math.ceil(firstStep)),
      answer.xHigh,
    ),
    firstRank,
    lastRank: ranks[Math.min(lastPlace, ranks.length - 1)] ?? firstRank,
  };
}

export function needOf(
  view: Viewport,
  world: Viewport,
  ranks: Int32Array,
  size: SizePx,
): HeatmapNeed {
  const first = Math.max(0, Math.floor(view.y0));
  const end = Math.min(ranks.length, Math.ceil(view.y1));
  const allRanks = first === 0 && end === ranks.length;
  const isAll = view.x0 <= world.x0 && view.x1 >= world.x1;
  const low = Math.max(Math.floor(view.x0), Math.ceil(world.x0));
  const high = Math.min(Math.ceil(view.x1), Math.floor(world.x1));
  return {
    steps: isAll ? null : { low, high },
    px: size.widthPx,
    rows: size.heightPx,
    ranks: allRanks ? null : formatRankSet([...ranks.slice(first, end)]),
  };
}

export interface Domain {
  readonly low: number;
  readonly high: number;
  readonly capacity: boolean;
  /** 0 is neutral; less and more have their own colours. */
  readonly diverging: boolean;
}

/** Share of cells between the ends of a diverging scale. */
const WITHIN_SHARE = 0.99;
/** Least end of a diverging scale, in per cent ... */
const LEAST_DIVERGENCE = 5;

/** ... and for bytes, as a share of the capacity. */
const LEAST_SHARE = 0.05;

/** A scale is at least so many times the noise: 97.9 and 98.7 ms look alike. */
const LEAST_NOISES = 12;

/** Data below this share of the capacity are scaled to their own range. */
const FLAT_SHARE = 0.25;

/** 0 to capacity, so that 97 % looks the same everywhere, unless that would be flat. */
export function defaultsToCapacity(answer: HeatmapResponse): boolean {
  const { capacityBytes, valueHigh } = answer;
  return capacityBytes !== null && valueHigh >= capacityBytes * FLAT_SHARE;
}

export function domainOf(
  answer: HeatmapResponse,
  diverging: boolean,
  byCapacity: boolean,
): Domain {
  const { capacityBytes, valueLow, valueHigh } = answer;
  const capacity = byCapacity && capacityBytes !== null && !diverging;
  if (capacity)
    return { low: 0, high: Math.max(capacityBytes, 1), capacity, diverging };
  if (!diverging) {
    const high = Math.max(valueHigh, valueLow + LEAST_NOISES * answer.noise);
    return { low: valueLow, high, capacity, diverging };
  }
  // Symmetric; a few outliers must not take all shades.
  const stride = Math.max(1, Math.floor(answer.values.length / 20_000));
  const some = answer.values.filter((cell, i) => cell > 0 && i % stride === 0);
  const sizes = Float64Array.from(some, (cell) =>
    Math.abs(cellValue(cell, valueLow, valueHigh)),
  ).sort();
  const usual = sizes[Math.floor((sizes.length - 1) * WITHIN_SHARE)] ?? 0;
  const most = Math.max(LEAST_DIVERGENCE, LEAST_SHARE * (capacityBytes ?? 0), usual);
  return { low: -most, high: most, capacity, diverging };
}
