/** What the picture's controller is told, and what it tells. */

import type { PointPx } from "../../render/gestures";
import type { RunColours } from "../../render/runs";
import type { Viewport } from "../../render/viewport";
import type { BlockAxis } from "./axis";
import type { LabelNames } from "./labels";
import type { BlockScene } from "./paint";
import type { BlockFacts, BlockTile } from "./tile";

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

export interface BlockInputs {
  readonly axis: BlockAxis;
  /** World y of the picture's top at rest. */
  readonly topBytes: number;
  /** Drawn from the coarsest to the finest. */
  readonly tiles: readonly BlockTile[];
  readonly colours: ReadonlyMap<BlockTile, RunColours>;
  readonly scene: Pick<
    BlockScene,
    | "theme"
    | "byteUnit"
    | "marks"
    | "capacityBytes"
    | "showReserved"
    | "labelColour"
    | "pinnedX"
    | "markedX"
  >;
  readonly names: Pick<LabelNames, "band" | "block">;
  /** The pinned block; null: none. */
  readonly life: number | null;
  /** Lit though nothing points at it. */
  readonly stack: number | null;
  /** The chosen range in units of the axis. */
  readonly range: { readonly low: number; readonly high: number } | null;
  readonly cursorText: (hover: BlockHover) => string;
}

export interface BlockEvents {
  /** The viewport moved; `settled` once it rests. */
  readonly onView: (view: Viewport, settled: boolean) => void;
  readonly onPin: (hover: BlockHover) => void;
  readonly onRange: (low: number, high: number) => void;
}
