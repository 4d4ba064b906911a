/**
 * Two ways to look at stacks beside the plain tree: a sandwich, what calls a frame and
 * what it calls; and a difference, what grew and what shrank between two moments. Pure.
 */

import { buildFlame, type FlameTree, type FramePath } from "./flame_tree";

export interface Sandwich {
  /** The frame as root, its callers below it, each one's caller below that. */
  readonly callers: FlameTree;
  /** The frame as root with what it calls. */
  readonly callees: FlameTree;
  /** Of the slots given: those whose stack holds the frame. Slots of both trees. */
  readonly slots: Int32Array;
}

/**
 * Both sides of a frame. Where a stack holds it several times (recursion), the outermost
 * counts, so that no byte is counted twice.
 */
export function sandwich(
  paths: readonly FramePath[],
  weights: ArrayLike<number>,
  frame: number,
): Sandwich {
  const slots: number[] = [];
  const callers: number[][] = [];
  const callees: number[][] = [];
  paths.forEach((path, slot) => {
    const frames = Array.from(path);
    const at = frames.indexOf(frame);
    if (at < 0) return;
    slots.push(slot);
    callers.push(frames.slice(0, at + 1).reverse());
    callees.push(frames.slice(at));
  });
  const own = slots.map((slot) => weights[slot] ?? 0);
  return {
    callers: buildFlame(callers, own),
    callees: buildFlame(callees, own),
    slots: Int32Array.from(slots),
  };
}

export interface FrameTotal {
  readonly frame: number;
  /** Of all stacks that hold the frame. */
  readonly totalBytes: number;
  /** Of those that end in it. */
  readonly selfBytes: number;
}

/** What each frame holds, alone and with what it calls; the most first. */
export function frameTotals(
  paths: readonly FramePath[],
  bytes: ArrayLike<number>,
): readonly FrameTotal[] {
  const total = new Map<number, number>();
  const self = new Map<number, number>();
  paths.forEach((path, slot) => {
    const own = bytes[slot] ?? 0;
    if (own === 0) return;
    const frames = Array.from(path);
    for (const frame of new Set(frames))
      total.set(frame, (total.get(frame) ?? 0) + own);
    const leaf = frames.at(-1);
    if (leaf !== undefined) self.set(leaf, (self.get(leaf) ?? 0) + own);
  });
  return Array.from(total, ([frame, totalBytes]) => {
    return { frame, totalBytes, selfBytes: self.get(frame) ?? 0 };
  }).sort((a, b) => b.totalBytes - a.totalBytes || a.frame - b.frame);
}

/** Bytes by stack. */
export interface StackBytes {
  readonly stack: ArrayLike<number>;
  readonly bytes: ArrayLike<number>;
}

export interface StackDifference {
  /** Stacks of either side, those that changed most first. */
  readonly stack: Int32Array;
  readonly before: Float64Array;
  readonly after: Float64Array;
  /** The larger of the two: what a box of the difference is as wide as. */
  readonly larger: Float64Array;
}

/** Two moments side by side; a stack that one of them lacks holds nothing there. */
export function difference(before: StackBytes, after: StackBytes): StackDifference {
  const rows = new Map<number, [number, number]>();
  const add = (of: StackBytes, side: 0 | 1): void => {
    for (let i = 0; i < of.stack.length; i += 1) {
      const stack = of.stack[i] ?? -1;
      const row = rows.get(stack) ?? [0, 0];
      row[side] += of.bytes[i] ?? 0;
      rows.set(stack, row);
    }
  };
  add(before, 0);
  add(after, 1);
  const changed = ([, [a, b]]: [number, [number, number]]): number => Math.abs(b - a);
  const ordered = [...rows].sort((a, b) => changed(b) - changed(a) || a[0] - b[0]);
  return {
    stack: Int32Array.from(ordered, ([stack]) => stack),
    before: Float64Array.from(ordered, ([, row]) => row[0]),
    after: Float64Array.from(ordered, ([, row]) => row[1]),
    larger: Float64Array.from(ordered, ([, row]) => Math.max(...row)),
  };
}
