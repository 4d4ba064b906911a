/** The props of the stacked categories through one window. */

import type { ModuleTimelineResponse } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { Origin } from "../../model/words/origin";
import type { ExportSource } from "../export/source";
import type { XRange } from "../line_chart/types";
import type { Boundary } from "./spans";

/** Moves the cursor of a drawn chart. */
export interface StackHandle {
  readonly toPeak: () => void;
  /** False where there is no further peak on that side. */
  readonly toNextPeak: (side: -1 | 1) => boolean;
}

/** What is drawn. */
export type StackAnswer = Pick<
  ModuleTimelineResponse,
  | "axis"
  | "xLow"
  | "xHigh"
  | "x0"
  | "xPerColumn"
  | "totalBytes"
  | "peakX"
  | "categories"
  | "spans"
  | "marks"
>;

export interface CategoryStackProps {
  readonly label: string;
  readonly answer: StackAnswer;
  /** Since when x counts; "tracking began" where nothing is said. */
  readonly began?: string;
  /** The part shown, in units of the axis; null shows everything. */
  readonly range: XRange | null;
  readonly onRange: (range: XRange | null) => void;
  /** Fqn of the module whose spans are outlined. */
  readonly selected: string | null;
  /** The moment that the table shows, in units of the axis. */
  readonly moment: number | null;
  readonly onPick: (boundary: Boundary) => void;
  /** A boundary as the table would name it: "after post-forward of Net". */
  readonly boundaryWords: (boundary: Boundary) => string;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** Height of the stack itself, without axis and spans. */
  readonly plotPx: number;
  readonly origin: Origin;
  /** Filled with what keys outside the chart do. */
  readonly handle?: { current: StackHandle | null };
  /** Filled with what the export menu writes, for menus elsewhere. */
  readonly exporter?: { current: ExportSource | null };
  /** What the answer is about, beside the columns in JSON. */
  readonly about: Readonly<Record<string, unknown>>;
}
