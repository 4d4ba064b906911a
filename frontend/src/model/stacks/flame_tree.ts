/** Built once per set of stacks; sums, new at every mouse move, only walk columns. */

import { Tree } from "../tree";

export const ROOT_FRAME = -3;

export class FlameTree extends Tree {
  /** Pre-order: a node's subtree is all from it up to its `end`. */
  constructor(
    readonly frame: Int32Array,
    parent: Int32Array,
    readonly end: Int32Array,
    /** By slot: the node where its path ends. */
    readonly leaf: Int32Array,
  ) {
    super(parent);
  }

  /** By node. */
  sums(bySlot: ArrayLike<number>): Float64Array {
    const { numNodes, leaf, parent } = this;
    const sums = new Float64Array(numNodes);
    for (let slot = 0; slot < leaf.length; slot += 1) {
      const node = leaf[slot] ?? 0;
      sums[node] = (sums[node] ?? 0) + (bySlot[slot] ?? 0);
    }
    for (let node = numNodes - 1; node > 0; node -= 1) {
      const up = parent[node] ?? 0;
      sums[up] = (sums[up] ?? 0) + (sums[node] ?? 0);
    }
    return sums;
  }

  /** Frames from the root, excluding it, to the node. */
  path(node: number): readonly number[] {
    const nodes = [...this.ancestors(node), node];
    return nodes.slice(1).map((ancestor) => this.frame[ancestor] ?? ROOT_FRAME);
  }

  /** null: no node has this path. */
  find(path: readonly number[]): number | null {
    let node = 0;
    for (const frame of path) {
      const child = this.children(node).find(
        (candidate) => this.frame[candidate] === frame,
      );
      if (child === undefined) return null;
      node = child;
    }
    return node;
  }
}

type FramePath = Int32Array | readonly number[];

interface Draft {
  readonly frame: number;
  weight: number;
  readonly below: Map<number, Draft>;
  /** Its index in the tree. */
  place: number;
}

function draftOf(frame: number, weight = 0): Draft {
  return { frame, weight, below: new Map(), place: 0 };
}

/**
 * One path per slot, root first. Children keep the order of `weights`, heaviest first:
 * boxes that swapped places at every mouse move could not be followed.
 */
export function buildFlame(
  paths: readonly FramePath[],
  weights: ArrayLike<number>,
): FlameTree {
  const root = draftOf(ROOT_FRAME);
  const leaves = paths.map((path, slot) => {
    let draft = root;
    for (const frame of path) {
      const next = draft.below.get(frame) ?? draftOf(frame);
      draft.below.set(frame, next);
      next.weight += weights[slot] ?? 0;
      draft = next;
    }
    return draft;
  });
  return inOrder(root, leaves);
}

/** Of a known tree: its nodes are the frames. */
export function nestedFlame(parent: Int32Array, weights: Float64Array): FlameTree {
  const root = draftOf(ROOT_FRAME);
  const drafts = Array.from(weights, (weight, id) => draftOf(id, weight));
  drafts.forEach((draft, id) =>
    (drafts[parent[id] ?? -1] ?? root).below.set(id, draft),
  );
  return inOrder(root, []);
}

function inOrder(root: Draft, leaves: readonly Draft[]): FlameTree {
  const frame: number[] = [];
  const parent: number[] = [];
  // No recursion: trees may be deep.
  const stack: (readonly [Draft, number])[] = [[root, -1]];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [node, up] = next;
    node.place = frame.length;
    frame.push(node.frame);
    parent.push(up);
    const below = [...node.below.values()].reverse();
    below.sort((a, b) => a.weight - b.weight);
    for (const child of below) stack.push([child, node.place]);
  }
  const size = new Int32Array(frame.length).fill(1);
  for (let node = frame.length - 1; node > 0; node -= 1) {
    const up = parent[node] ?? 0;
    size[up] = (size[up] ?? 0) + (size[node] ?? 0);
  }
  return new FlameTree(
    Int32Array.from(frame),
    Int32Array.from(parent),
    size.map((numNodes, node) => node + numNodes),
    Int32Array.from(leaves, ({ place }) => place),
  );
}

/**
 * The frame as root of its callers and of its callees; `slots`: of both trees, the
 * stacks that hold the frame. Of a recursion the outermost counts, so that no byte
 * counts twice.
 */
export function sandwich(
  paths: readonly FramePath[],
  weights: ArrayLike<number>,
  frame: number,
) {
  const slots: number[] = [];
  const callers: number[][] = [];
  const callees: number[][] = [];
  paths.forEach((path, slot) => {
    const frames = Array.from(path);
    const index = frames.indexOf(frame);
    if (index < 0) return;
    slots.push(slot);
    callers.push(frames.slice(0, index + 1).reverse());
    callees.push(frames.slice(index));
  });
  const own = slots.map((slot) => weights[slot] ?? 0);
  return {
    callers: buildFlame(callers, own),
    callees: buildFlame(callees, own),
    slots: Int32Array.from(slots),
  };
}

/** Bytes of all stacks with a frame, and of those that end in it; largest first. */
export function frameTotals(paths: readonly FramePath[], bytes: ArrayLike<number>) {
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

/** x and width are shares of the whole width. */
export interface FlameBox {
  readonly node: number;
  readonly x: number;
  readonly width: number;
  /** Rows below the top. */
  readonly row: number;
}

/** Ancestors of the zoomed node are full width; boxes below `least` are left out. */
export function flameBoxes(
  tree: FlameTree,
  values: Float64Array,
  root: number,
  least: number,
): readonly FlameBox[] {
  const boxes: FlameBox[] = tree
    .ancestors(root)
    .map((node) => ({ node, x: 0, width: 1, row: tree.depth(node) }));
  const whole = values[root] ?? 0;
  const nextX = new Float64Array(tree.maxDepth + 2);
  const end = tree.end[root] ?? 0;
  for (let node = root; node < end && whole > 0;) {
    const row = tree.depth(node);
    const width = (values[node] ?? 0) / whole;
    const x = nextX[row] ?? 0;
    nextX[row] = x + width;
    if (width < least) {
      node = tree.end[node] ?? end;
      continue;
    }
    nextX[row + 1] = x;
    boxes.push({ node, x, width, row });
    node += 1;
  }
  return boxes;
}

export function boxAt(
  boxes: readonly FlameBox[],
  share: number,
  row: number,
): FlameBox | undefined {
  return boxes.find(
    (box) => box.row === row && share >= box.x && share < box.x + box.width,
  );
}
