/** The props of the picture of blocks. */

import type { HistoryDevice } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { CallStacks } from "../../model/stacks/call_stacks";
import type { Viewport } from "../../render/viewport";
import type { BlockAxis } from "./axis";
import type { BlockController } from "./controller";
import type { BlockHover } from "./inputs";
import type { DrawnMarks } from "./marks";
import type { BlockTile } from "./tile";

export interface BlockStackProps {
  readonly label: string;
  readonly device: HistoryDevice;
  readonly axis: BlockAxis;
  readonly marks: DrawnMarks;
  readonly topBytes: number;
  /** The whole first, then the finer ones of parts of it. */
  readonly tiles: readonly BlockTile[];
  readonly stacks: CallStacks | null;
  /** Key of the only group that keeps its colour; "" for all. */
  readonly only: string;
  readonly onOnly: (key: string) => void;
  /** Which blocks were searched for; null: nothing was. */
  readonly found: ((tile: BlockTile, slot: number) => boolean) | null;
  /** Pinned; null: nothing is. */
  readonly moment: number | null;
  readonly life: number | null;
  /** Marked for a difference. */
  readonly marked: number | null;
  /** Lit: all blocks of it. */
  readonly stack: number | null;
  readonly range: { readonly low: number; readonly high: number } | null;
  readonly onView: (view: Viewport, settled: boolean) => void;
  readonly onPin: (hover: BlockHover) => void;
  readonly onRange: (low: number, high: number) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
  /** Set while a finer picture is on its way. */
  readonly loading: boolean;
  readonly asTable: boolean;
  /** The part in sight once it rests, for the table; null: everything. */
  readonly seen: Viewport | null;
  /** The moment that the legend is of while nothing points; else the pinned one. */
  readonly anchor?: number;
  /** What each group, by key, holds at it exactly; null: as the picture knows it. */
  readonly exact?: ReadonlyMap<string, number> | null;
  /** Source lines that a finding names, as groups are labelled: drawn in red. */
  readonly culprits?: ReadonlySet<string>;
  /** Told the controller, for keys and buttons elsewhere; null when it is gone. */
  readonly onReady: (controller: BlockController | null) => void;
}
