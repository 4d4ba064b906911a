/** What the cursor of a chart goes by: its keys, tip and spoken words follow from it. */

import { nearestIndex } from "../../model/lines/polyline";
import type { Envelope } from "../../model/lines/peaks";
import type { PointPx } from "../../render/gestures";
import type { SizePx, Viewport } from "../../render/viewport";
import type { Reading } from "./reading";

/** What part of the chart is in sight, and where the plot is on the canvas. */
export interface Seen {
  readonly view: Viewport;
  readonly size: SizePx;
  readonly left: number;
  readonly top: number;
}

export interface Reader {
  /** Where the cursor stands for an x: on what was recorded; null where nothing was. */
  readonly snap: (x: number) => number | null;
  /** x so many columns away. */
  readonly step: (from: number, count: number) => number;
  /** Where columns are read and how high they are: P and brackets go by it. */
  readonly columns?: () => Envelope;
  /** Where P leads, where that is not the highest column. */
  readonly peak?: (() => number | null) | undefined;
  /** Up and down go from one to the next. */
  readonly stops?: readonly number[];
  /** What stands at x; `at` is in px of the plot, with y NaN where keys led there. */
  readonly read: (x: number, at: PointPx, seen: Seen) => Reading | null;
  /** A click, or Enter at the cursor. */
  readonly pick?: (x: number, at: PointPx, seen: Seen) => void;
}

/** Rows that can be zoomed and moved. */
export interface Rows {
  readonly all: readonly [first: number, end: number];
  readonly least: number;
  readonly onRows: (rows: readonly [first: number, end: number]) => void;
}

/** A cursor that stands on columns and nowhere else. */
export function onColumns(
  make: () => Envelope,
): Required<Pick<Reader, "columns" | "snap" | "step">> {
  let made: Envelope | null = null;
  const columns = () => (made ??= make());
  return {
    columns,
    snap: (x) => columns().x[nearestIndex(columns().x, x)] ?? null,
    step: (from, count) => {
      const { x } = columns();
      const next = nearestIndex(x, from) + count;
      return x[Math.min(Math.max(next, 0), x.length - 1)] ?? NaN;
    },
  };
}
