import type { ReadonlySignal } from "@preact/signals";
import type { Unit } from "../../api/types.gen";
import { formatShare, type ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { divergingColours } from "../../model/category";
import type { CallStacks } from "../../model/stacks/call_stacks";
import {
  flameBoxes,
  ROOT_FRAME,
  type FlameBox,
  type FlameTree,
} from "../../model/stacks/flame_tree";
import { formatExact, formatQuantity, formatSigned } from "../../model/words/quantity";
import { hexOf, pixelOf } from "../../render/palette";
import { inkOn, mixed } from "../block_stack/paint/colours";

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
  readonly frameMatches: Uint8Array | null;
  readonly onZoom: (path: readonly number[]) => void;
  /** Shift-click: callers and callees. */
  readonly onFrame?: (frame: number) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
}

export const ROW_PX = 18;
/** Smaller boxes are left out with their children. */
export const LEAST_BOX_PX = 0.6;
export const LABEL_LEAST_PX = 26;

/** Pale, so that text in the page's colour is readable. */
const FILL_KEEPS: Readonly<Record<Theme, number>> = { light: 0.4, dark: 0.5 };

function fills(palette: readonly string[], theme: Theme): readonly string[] {
  const bg = pixelOf(tokens(theme).bg);
  return palette.map((colour) => hexOf(mixed(pixelOf(colour), bg, FILL_KEEPS[theme])));
}

/** From less (first) over equal (middle) to more (last). */
export function changeFills(theme: Theme, numSteps = 21): readonly string[] {
  const [less, more] = divergingColours(theme);
  const neutral = pixelOf(theme === "dark" ? "#4a4a4a" : "#e4e4e4");
  return Array.from({ length: numSteps }, (_, i) => {
    const share = (i / (numSteps - 1)) * 2 - 1;
    const colour = pixelOf(share < 0 ? less : more);
    return hexOf(mixed(colour, neutral, Math.sqrt(Math.abs(share)) * 0.8));
  });
}

export function boxFills(
  { colour, palette, change }: FlameData,
  theme: Theme,
): (node: number) => string {
  const { surface } = tokens(theme);
  const colours = change === null ? fills(palette, theme) : changeFills(theme);
  return (node) => {
    if (node === 0) return surface;
    const index =
      change === null
        ? (colour[node] ?? 0)
        : changeStep(change.before[node] ?? 0, change.after[node] ?? 0);
    return colours[index] ?? surface;
  };
}

/** Shades of a difference may be dark: the ink depends on the fill. */
export function boxInks(): (fill: string) => string {
  const inkByFill = new Map<string, string>();
  return (fill) => {
    const ink = inkByFill.get(fill) ?? inkOn(fill);
    inkByFill.set(fill, ink);
    return ink;
  };
}

export interface FlameLayout {
  readonly data: FlameData;
  readonly boxes: readonly FlameBox[];
  readonly root: number;
  /** CSS px of all rows. */
  readonly totalPx: number;
  readonly upwards: boolean;
  readonly hideRoot: boolean;
}

/** `upwards`: at least `heightPx`, so that boxes stand on the bottom. */
export function placed(
  data: FlameData,
  { zoom, upwards = false, hideRoot = false }: FlameShape,
  widthPx: number,
  heightPx = 0,
): FlameLayout {
  const root = zoomedNode(data.tree, zoom);
  const boxes = flameBoxes(data.tree, data.values, root, LEAST_BOX_PX / widthPx);
  const numRows = boxes.reduce((most, { row }) => Math.max(most, row + 1), 0);
  const rowsPx = Math.max(1, numRows - Number(hideRoot)) * ROW_PX;
  const totalPx = upwards ? Math.max(rowsPx, heightPx) : rowsPx;
  return { data, boxes, root, totalPx, upwards, hideRoot };
}

export function nodeWords(
  { data, root }: FlameLayout,
  node: number,
  stacks: FrameNames,
  byteUnit: ByteUnit,
): readonly string[] {
  const { tree, values, change, unit = "bytes" } = data;
  const text = (value: number): string => formatQuantity(value, unit, byteUnit);
  const frame = tree.frame[node] ?? ROOT_FRAME;
  const name = frame === ROOT_FRAME ? data.title : stacks.frameLabel(frame);
  const value = values[node] ?? 0;
  if (change !== null) {
    const [before, after] = [change.before[node] ?? 0, change.after[node] ?? 0];
    const [earlier, later] = change.names ?? ["before", "after"];
    return [
      name,
      formatSigned(after - before, unit, byteUnit),
      `${text(before)} ${earlier}, ${text(after)} ${later}`,
    ];
  }
  const shares = [`${formatShare(value, values[0] ?? 0)} of all`];
  if (root > 0) {
    shares.push(`${formatShare(value, values[root] ?? 0)} of the zoomed box`);
  }
  return [name, `${text(value)} (${formatExact(value, unit)})`, ...shares];
}

export function rootText(
  { title, values, change, unit = "bytes" }: FlameData,
  byteUnit: ByteUnit,
): string {
  if (change === null) {
    return `${title}: ${formatQuantity(values[0] ?? 0, unit, byteUnit)}`;
  }
  const by = (change.after[0] ?? 0) - (change.before[0] ?? 0);
  return `${title}: ${formatSigned(by, unit, byteUnit)}`;
}

/** -1 (gone) to 1 (new): the change as a share of the larger side. */
export function changeShare(before: number, after: number): number {
  const larger = Math.max(before, after);
  return larger > 0 ? (after - before) / larger : 0;
}

export function changeStep(before: number, after: number, numSteps = 21): number {
  const share = changeShare(before, after);
  return Math.round(((share + 1) / 2) * (numSteps - 1));
}

/** The deepest node of the path that this tree has. */
export function zoomedNode(tree: FlameTree, path: readonly number[]): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node = tree.find(path.slice(0, length));
    if (node !== null) return node;
  }
  return 0;
}

export class FlameLabels {
  readonly #labels = new Map<
    number,
    { readonly text: string; readonly width: number }
  >();

  constructor(
    private readonly stacks: Pick<FrameNames, "boxLabel">,
    private readonly widthOf: (text: string) => number,
  ) {}

  /** "" where fewer than 3 letters fit. */
  fitting(frame: number, roomPx: number): string {
    let label = this.#labels.get(frame);
    if (label === undefined) {
      const text = this.stacks.boxLabel(frame);
      label = { text, width: this.widthOf(text) };
      this.#labels.set(frame, label);
    }
    if (label.width <= roomPx) return label.text;
    // Measuring every cut text would take longer than the rest of a drawing.
    const letters = Math.floor((roomPx - 6) / (label.width / label.text.length));
    return letters < 3 ? "" : `${label.text.slice(0, letters).trimEnd()}…`;
  }
}

/** No box is counted twice. */
export function foundBytes(
  { tree, values }: FlameData,
  frameMatches: Uint8Array,
  root: number,
): number {
  let bytes = 0;
  const end = tree.end[root] ?? 0;
  for (let node = root; node < end;) {
    const frame = tree.frame[node] ?? ROOT_FRAME;
    if (frame >= 0 && frameMatches[frame] === 1) {
      bytes += values[node] ?? 0;
      node = tree.end[node] ?? end;
    } else node += 1;
  }
  return bytes;
}

/** A colour with this share of a node's bytes is the node's. */
const MOSTLY = 0.66;

/** `mixture`: no colour has two thirds of the bytes. `slotColour`: by slot. */
export function nodeColours(
  tree: FlameTree,
  slotColour: ArrayLike<number>,
  weights: ArrayLike<number>,
  mixture: number,
): Uint8Array {
  const sums = Array.from({ length: mixture }, (_, colour) =>
    tree.sums(
      Float64Array.from({ length: tree.leaf.length }, (__, slot) =>
        slotColour[slot] === colour ? (weights[slot] ?? 0) : 0,
      ),
    ),
  );
  const all = tree.sums(weights);
  return Uint8Array.from({ length: tree.numNodes }, (_, node) => {
    const best = sums.findIndex(
      (sum) => (sum[node] ?? 0) >= MOSTLY * (all[node] ?? 0) && (sum[node] ?? 0) > 0,
    );
    return best < 0 ? mixture : best;
  });
}
