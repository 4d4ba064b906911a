/** The props of the rank x step heatmap. */

import type { Signal } from "@preact/signals";
import type { HeatmapResponse } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { Origin } from "../../model/words/origin";
import type { ExportSource } from "../export/source";

/** A closed range of steps. */
export interface StepRange {
  readonly low: number;
  readonly high: number;
}

/** The answer that would be sharp for what is shown now. */
export interface HeatmapNeed {
  /** null where everything is shown. */
  readonly steps: StepRange | null;
  readonly px: number;
  readonly rows: number;
  /** The ranks in sight, ascending; null where all are. */
  readonly ranks: readonly number[] | null;
}

/** The cell picked; where rows or columns are pooled, the range it stands for. */
export interface CellPick {
  readonly firstRank: number;
  readonly lastRank: number;
  readonly firstStep: number;
  readonly lastStep: number;
}

/** Of several ranks the one with the highest value, or farthest from the middle rank's. */
export type Pooled = "highest" | "farthest";

export interface HeatmapProps {
  readonly label: string;
  /** Everything, coarse: stays below while a finer answer is under way. */
  readonly overview: HeatmapResponse;
  /** The sharp answer for what was last asked; null until there is one. */
  readonly detail: HeatmapResponse | null;
  /** All ranks drawn, ascending: the rows from top to bottom. */
  readonly ranks: Int32Array;
  readonly pinned: readonly number[];
  /** Steps shown; null shows all and follows them as they grow. */
  readonly range: StepRange | null;
  readonly onRange: (range: StepRange | null) => void;
  /** Called once a gesture has settled, and when the size changes. */
  readonly onNeed: (need: HeatmapNeed) => void;
  /** A click or Enter on a cell. */
  readonly onPick: (pick: CellPick) => void;
  /** The step under the pointer, shared with the charts above. */
  readonly cursor: Signal<number | null>;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
  /** Values are more or less than 0, which is as usual; default no. */
  readonly diverging?: boolean;
  /** Which one a cell of several ranks shows; default the highest. */
  readonly pooled?: Pooled;
  /** Said by exported files and pictures. */
  readonly origin: Origin;
  /** Filled with what the heatmap's export menu writes, for menus elsewhere. */
  readonly exporter?: { current: ExportSource | null };
}
