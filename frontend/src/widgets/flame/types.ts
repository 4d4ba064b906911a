import type { ReadonlySignal } from "@preact/signals";
import type { Unit } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { CallStacks } from "../../model/stacks/call_stacks";
import type { FlameTree } from "../../model/stacks/flame_tree";

export interface FlameData {
  readonly tree: FlameTree;
  /** By node; the width of its box. */
  readonly values: Float64Array;
  /** Default: bytes. */
  readonly unit?: Unit;
  /** By node: index into `palette`. */
  readonly colour: Uint8Array;
  /** "#rrggbb"; the last is for mixtures. */
  readonly palette: readonly string[];
  /** Of a difference: values by node at both moments; colours show the change. */
  readonly change: {
    readonly before: Float64Array;
    readonly after: Float64Array;
    /** Default: "before", "after". */
    readonly names?: readonly [string, string];
  } | null;
  /** Name of the root, such as "live at event 1,203". */
  readonly title: string;
}

export type FrameNames = Pick<CallStacks, "frame" | "frameLabel" | "boxLabel">;

export interface FlameShape {
  /** Frames from the root to the zoomed node. */
  readonly zoom: readonly number[];
  readonly upwards?: boolean;
  readonly hideRoot?: boolean;
}

export interface FlameProps extends FlameShape {
  readonly label: string;
  readonly data: ReadonlySignal<FlameData | null>;
  readonly stacks: FrameNames;
  /** By frame: 1 if the search found it; null: no search. */
  readonly found: Uint8Array | null;
  readonly onZoom: (path: readonly number[]) => void;
  /** Shift-click: callers and callees. */
  readonly onFrame?: (frame: number) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
}
