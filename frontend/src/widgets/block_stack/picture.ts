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
  /** World y of the top edge when fitted. */
  readonly topBytes: number;
  /** The whole first, then finer tiles of parts. */
  readonly tiles: readonly BlockTile[];
  readonly stacks: CallStacks | null;
  /** Key of the group that does not fade; "": none fades. */
  readonly only: string;
  readonly matches: ((tile: BlockTile, slot: number) => boolean) | null;
  /** Source lines that a finding blames, drawn in red. */
  readonly culprits: ReadonlySet<string>;
  /** Pinned; null: none. */
  readonly moment: number | null;
  readonly life: number | null;
  /** Marked for a difference. */
  readonly marked: number | null;
  /** All its blocks are lit. */
  readonly stack: number | null;
  /** In units of the axis. */
  readonly range: { readonly low: number; readonly high: number } | null;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

export interface BlockView {
  readonly view: Viewport;
  readonly world: Viewport;
  /** Device px. */
  readonly size: SizePx;
}

export interface BlockHover {
  readonly point: PointPx;
  readonly x: number;
  readonly tile: BlockTile;
  readonly column: number;
  readonly moment: number;
  /** null: none is drawn there. */
  readonly block: BlockFacts | null;
  /** A band's blocks that are too thin to draw. */
  readonly rest: { readonly band: number; readonly bytes: number } | null;
}

export interface DirectLabel {
  readonly text: string;
  /** World units; the middle of the text. */
  readonly x: number;
  readonly y: number;
  readonly kind: "band" | "block";
  /** Band or slot. */
  readonly of: number;
  /** The text crosses the edges of its band. */
  readonly overflows?: boolean;
}
