/** What a flamegraph shows, and its props. */

import type { ReadonlySignal } from "@preact/signals";
import type { Unit } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { CallStacks } from "../../model/stacks/call_stacks";
import type { FlameTree } from "../../model/stacks/flame_tree";

export interface FlameData {
  readonly tree: FlameTree;
  /** By node: what a box is as wide as. */
  readonly values: Float64Array;
  /** Bytes where absent. */
  readonly unit?: Unit;
  /** By node: which of `palette` it has. */
  readonly colour: Uint8Array;
  /** "#rrggbb"; the last one is of mixtures. */
  readonly palette: readonly string[];
  /** Of a difference: values by node at both moments; colours then say the change. */
  readonly change: {
    readonly before: Float64Array;
    readonly after: Float64Array;
    /** What the two are called: "before", "after". */
    readonly names?: readonly [string, string];
  } | null;
  /** What the root stands for: "live at event 1,203". */
  readonly title: string;
}

/** What the frames of a tree are called. */
export type FrameNames = Pick<CallStacks, "frame" | "frameLabel" | "boxLabel">;

/** Which part of the tree is shown, and how it stands. */
export interface FlameShape {
  /** The frames from the root that is zoomed to. */
  readonly zoom: readonly number[];
  /** The root lies at the bottom and boxes grow upwards. */
  readonly upwards?: boolean;
  /** Without the row of the root, which here says nothing. */
  readonly hideRoot?: boolean;
}

export interface FlameProps extends FlameShape {
  readonly label: string;
  readonly data: ReadonlySignal<FlameData | null>;
  readonly stacks: FrameNames;
  /** By frame: 1 where it was searched for; null: nothing was. */
  readonly found: Uint8Array | null;
  readonly onZoom: (path: readonly number[]) => void;
  /** Shift-click: look at a frame from both sides. */
  readonly onFrame?: (frame: number) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
}
