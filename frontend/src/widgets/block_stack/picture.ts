/** What is drawn of a device's history, what of it is chosen, and what a pointer finds. */

import type { HistoryDevice } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { CallStacks } from "../../model/stacks/call_stacks";
import type { PointPx } from "../../render/gestures";
import type { SizePx, Viewport } from "../../render/viewport";
import type { BlockAxis } from "./axis";
import type { DrawnMarks } from "./marks";
import type { BlockFacts, BlockTile } from "./tile";

export interface BlockPicture {
  readonly device: HistoryDevice;
  readonly axis: BlockAxis;
  readonly marks: DrawnMarks;
  /** World y of the picture's top at rest. */
  readonly topBytes: number;
  /** The whole first, then the finer ones of parts of it. */
  readonly tiles: readonly BlockTile[];
  readonly stacks: CallStacks | null;
  /** Key of the only group that keeps its colour; "" for all. */
  readonly only: string;
  /** Which blocks were searched for; null: nothing was. */
  readonly found: ((tile: BlockTile, slot: number) => boolean) | null;
  /** Source lines that a finding names, as groups are labelled: drawn in red. */
  readonly culprits: ReadonlySet<string>;
  /** Pinned; null: nothing is. */
  readonly moment: number | null;
  readonly life: number | null;
  /** Marked for a difference. */
  readonly marked: number | null;
  /** Lit: all blocks of it. */
  readonly stack: number | null;
  /** Chosen, in units of the axis. */
  readonly range: { readonly low: number; readonly high: number } | null;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

/** What of it is seen. */
export interface BlockView {
  readonly view: Viewport;
  readonly world: Viewport;
  /** Device px. */
  readonly size: SizePx;
}

/** What is under the pointer or the keyboard's cursor. */
export interface BlockHover {
  readonly at: PointPx;
  readonly x: number;
  readonly tile: BlockTile;
  readonly column: number;
  /** The event that the column stands for. */
  readonly moment: number;
  /** null: no block is drawn there. */
  readonly block: BlockFacts | null;
  /** Band of blocks too thin to draw; null: none is there. */
  readonly rest: { readonly band: number; readonly bytes: number } | null;
}
