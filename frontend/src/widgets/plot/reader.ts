import { nearestIndex } from "../../model/lines/polyline";
import type { Envelope } from "../../model/lines/peaks";
import type { PointPx } from "../../render/gestures";
import type { SizePx, Viewport } from "../../render/viewport";
import type { LegendEntry } from "./legend";

export type ReadingNote =
  string | { readonly text: string; readonly class: "bad" | "quiet" | "warn" };

export interface ReadingRow {
  readonly name: string;
  /** After the name, fainter. */
  readonly note?: string | undefined;
  readonly value: string;
  /** After the value, fainter. */
  readonly exact?: string | undefined;
  readonly swatch?: Pick<LegendEntry, "colour" | "dash" | "isBand">;
}

export interface Reading {
  readonly title: string;
  /** Colour of what the pointer is on. */
  readonly swatch?: string | undefined;
  readonly notes?: readonly ReadingNote[];
  readonly rows?: readonly ReadingRow[];
  readonly foot?: readonly ReadingNote[];
}

/** The visible part, and the plot's corner on the canvas. */
export interface PlotSight {
  readonly view: Viewport;
  readonly size: SizePx;
  readonly left: number;
  readonly top: number;
}

export interface Reader {
  /** The nearest recorded x; null: none. */
  readonly snap: (x: number) => number | null;
  readonly step: (from: number, count: number) => number;
  /** For P and the brackets. */
  readonly columns?: () => Envelope;
  /** Target of P; default: the highest column. */
  readonly peak?: (() => number | null) | undefined;
  /** Up and down move between them. */
  readonly stops?: readonly number[] | undefined;
  /** `point`: px of the plot; y is NaN where keys moved the cursor. */
  readonly read: (x: number, point: PointPx, seen: PlotSight) => Reading | null;
  readonly pick?: ((x: number, point: PointPx, seen: PlotSight) => void) | undefined;
}

export interface Rows {
  readonly all: readonly [first: number, end: number];
  readonly least: number;
  readonly onRows: (rows: readonly [first: number, end: number]) => void;
}

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
