/**
 * Call stacks merged into a tree with bytes, and the tree as nested boxes. The tree is
 * built once for a set of stacks; their bytes may change with every move of the mouse, so
 * summing and placing only walk over columns. Pure.
 */

/** The frame of the root, which stands for all memory. */
export const ROOT_FRAME = -3;

/** Pseudo frames are at least this; keys of the map must not be negative. */
const LEAST_FRAME = -3;

export class FlameTree {
  readonly numNodes: number;
  readonly maxDepth: number;

  /** Nodes stand in pre-order: a node's subtree is all from it up to its `end`. */
  constructor(
    readonly frame: Int32Array,
    readonly parent: Int32Array,
    readonly depth: Int32Array,
    readonly end: Int32Array,
    /** By slot: the node at which its path ends. */
    readonly leaf: Int32Array,
  ) {
    this.numNodes = frame.length;
    this.maxDepth = depth.reduce((most, one) => Math.max(most, one), 0);
  }

  /** Bytes of every node, from the bytes of each slot. `into` is filled where it fits. */
  sums(bySlot: ArrayLike<number>, into?: Float64Array): Float64Array {
    const { numNodes, leaf, parent } = this;
    const fits = into?.length === numNodes;
    const sums = fits ? into.fill(0) : new Float64Array(numNodes);
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

  /** From the root down to the node's parent. */
  ancestors(node: number): readonly number[] {
    const found: number[] = [];
    for (let up = this.parent[node] ?? -1; up >= 0; up = this.parent[up] ?? -1) {
      found.push(up);
    }
    return found.reverse();
  }

  /** The frames from the root, without it, to the node. */
  path(node: number): readonly number[] {
    const nodes = [...this.ancestors(node), node];
    return nodes.slice(1).map((one) => this.frame[one] ?? ROOT_FRAME);
  }

  /** The node with the same path; null where this tree has none. */
  find(path: readonly number[]): number | null {
    let node = 0;
    for (const frame of path) {
      const child = this.children(node).find((one) => this.frame[one] === frame);
      if (child === undefined) return null;
      node = child;
    }
    return node;
  }

  children(node: number): readonly number[] {
    const found: number[] = [];
    const end = this.end[node] ?? 0;
    for (let child = node + 1; child < end; child = this.end[child] ?? end) {
      found.push(child);
    }
    return found;
  }
}

/** Frames from the root to the leaf. */
export type FramePath = Int32Array | readonly number[];

/** A tree in any order; parents stand before their children. */
interface Draft {
  readonly frame: ArrayLike<number>;
  readonly parent: ArrayLike<number>;
  readonly weight: ArrayLike<number>;
  /** As of a `FlameTree`. */
  readonly leaf: Int32Array;
}

function draft(paths: readonly FramePath[], weights: ArrayLike<number>): Draft {
  const frame = [ROOT_FRAME];
  const parent = [-1];
  const weight = [0];
  const leaf = new Int32Array(paths.length);
  let highest = 0;
  for (const path of paths) {
    for (const frame of path) highest = Math.max(highest, frame);
  }
  const width = highest - LEAST_FRAME + 1;
  const known = new Map<number, number>();
  paths.forEach((path, slot) => {
    let node = 0;
    const bytes = weights[slot] ?? 0;
    for (const wanted of path) {
      const key = node * width + (wanted - LEAST_FRAME);
      let next = known.get(key);
      if (next === undefined) {
        next = frame.length;
        known.set(key, next);
        frame.push(wanted);
        parent.push(node);
        weight.push(0);
      }
      node = next;
      weight[node] = (weight[node] ?? 0) + bytes;
    }
    leaf[slot] = node;
  });
  return { frame, parent, weight, leaf };
}

/**
 * The tree of paths from the root to the leaf, one for each slot. Children stand in the
 * order of `weights`, the heaviest first, and keep it whatever bytes are drawn: boxes
 * that changed places with every move of the mouse could not be followed.
 */
export function buildFlame(
  paths: readonly FramePath[],
  weights: ArrayLike<number>,
): FlameTree {
  return ordered(draft(paths, weights));
}

/** A tree that is known already, below a root: its nodes are the frames. */
export function nestedFlame(parent: Int32Array, weights: Float64Array): FlameTree {
  return ordered({
    frame: [ROOT_FRAME, ...parent.keys()],
    parent: [-1, ...parent.map((up) => up + 1)],
    weight: [0, ...weights],
    leaf: new Int32Array(0),
  });
}

function ordered({ frame, parent, weight, leaf }: Draft): FlameTree {
  const num = frame.length;
  const children: number[][] = Array.from({ length: num }, () => []);
  for (let node = 1; node < num; node += 1) children[parent[node] ?? 0]?.push(node);
  const heavier = (a: number, b: number): number =>
    (weight[b] ?? 0) - (weight[a] ?? 0) || a - b;
  const place = new Int32Array(num);
  const tree = {
    frame: new Int32Array(num),
    parent: new Int32Array(num).fill(-1),
    depth: new Int32Array(num),
    end: new Int32Array(num),
  };
  const stack = [0];
  let next = 0;
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    place[node] = next;
    tree.frame[next] = frame[node] ?? ROOT_FRAME;
    if (node > 0) {
      const up = place[parent[node] ?? 0] ?? 0;
      tree.parent[next] = up;
      tree.depth[next] = (tree.depth[up] ?? 0) + 1;
    }
    next += 1;
    const below = (children[node] ?? []).sort(heavier);
    for (let i = below.length - 1; i >= 0; i -= 1) {
      const child = below[i];
      if (child !== undefined) stack.push(child);
    }
  }
  tree.end.fill(1);
  for (let node = num - 1; node > 0; node -= 1) {
    const up = tree.parent[node] ?? 0;
    tree.end[up] = (tree.end[up] ?? 0) + (tree.end[node] ?? 0);
  }
  // Sizes of subtrees became ends.
  for (let node = 0; node < num; node += 1)
    tree.end[node] = (tree.end[node] ?? 0) + node;
  return new FlameTree(
    tree.frame,
    tree.parent,
    tree.depth,
    tree.end,
    leaf.map((node) => place[node] ?? 0),
  );
}

/** Boxes in sight, as columns; x and width are shares of the whole width. */
export interface FlameBoxes {
  readonly node: Int32Array;
  readonly x: Float64Array;
  readonly width: Float64Array;
  /** Rows below the top. */
  readonly row: Int32Array;
  readonly num: number;
  readonly numRows: number;
}

/**
 * The boxes of a tree, zoomed to a node, whose ancestors take the whole width above it.
 * Boxes narrower than `least` are left out with all below them.
 */
export function flameBoxes(
  tree: FlameTree,
  values: Float64Array,
  root: number,
  least: number,
): FlameBoxes {
  const node: number[] = [];
  const x: number[] = [];
  const width: number[] = [];
  const row: number[] = [];
  const push = (one: number, at: number, wide: number): void => {
    node.push(one);
    x.push(at);
    width.push(wide);
    row.push(tree.depth[one] ?? 0);
  };
  for (const up of tree.ancestors(root)) push(up, 0, 1);
  const whole = values[root] ?? 0;
  const at = new Float64Array(tree.maxDepth + 2);
  const end = tree.end[root] ?? 0;
  let numRows = node.length;
  for (let one = root; one < end && whole > 0;) {
    const depth = tree.depth[one] ?? 0;
    const wide = (values[one] ?? 0) / whole;
    const from = at[depth] ?? 0;
    at[depth] = from + wide;
    if (wide < least) {
      one = tree.end[one] ?? end;
      continue;
    }
    at[depth + 1] = from;
    push(one, from, wide);
    numRows = Math.max(numRows, depth + 1);
    one += 1;
  }
  return {
    node: Int32Array.from(node),
    x: Float64Array.from(x),
    width: Float64Array.from(width),
    row: Int32Array.from(row),
    num: node.length,
    numRows,
  };
}

/** The box at a point, as an index of `boxes`; -1: none. */
export function boxAt(boxes: FlameBoxes, share: number, row: number): number {
  for (let i = 0; i < boxes.num; i += 1) {
    const from = boxes.x[i] ?? 0;
    if (boxes.row[i] !== row || share < from) continue;
    if (share < from + (boxes.width[i] ?? 0)) return i;
  }
  return -1;
}
