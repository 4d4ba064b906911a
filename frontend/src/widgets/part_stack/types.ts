/** The props of the steps' time, stacked by part. */

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { StepsResponse } from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import type { Origin } from "../../model/words/origin";
import type { ExportSource } from "../export/source";
import type { XRange } from "../line_chart/types";

/** The part of an answer that is drawn. Columns have equal length; edges one more. */
export type StackedSteps = Pick<
  StepsResponse,
  | "x"
  | "edges"
  | "stepsPerColumn"
  | "firstStep"
  | "shownStep"
  | "columnRank"
  | "seconds"
  | "parts"
  | "exact"
  | "profilerSteps"
>;

/** Moves the cursor of a drawn chart. */
export interface PartStackHandle {
  readonly toSlowest: () => void;
  /** False where there is no further slow step on that side. */
  readonly toNextSlow: (side: -1 | 1) => boolean;
}

export interface PartStackProps {
  readonly label: string;
  readonly answer: StackedSteps;
  readonly extent: XRange;
  /** The part shown, in units of the axis; null shows everything. */
  readonly range: XRange | null;
  readonly onRange: (range: XRange | null) => void;
  /** x under the pointer, shared with the charts below. */
  readonly cursor: Signal<number | null>;
  /** The step that was pinned. */
  readonly pinned: number | null;
  readonly onPick: (step: number) => void;
  readonly theme: Theme;
  readonly plotPx: number;
  readonly origin: Origin;
  readonly about: Readonly<Record<string, unknown>>;
  /** Stand in the bar above. */
  readonly controls?: ComponentChildren;
  readonly handle?: { current: PartStackHandle | null };
  readonly exporter?: { current: ExportSource | null };
}
