/** For 50,000 nodes: nothing here makes an object for a node that is not shown. */

export interface TreeRow {
  readonly id: number;
  readonly depth: number;
  readonly numChildren: number;
  readonly expanded: boolean;
}

export class Tree {
  readonly numNodes: number;
  readonly roots: readonly number[];
  readonly maxDepth: number;
  readonly #depth: Int32Array;
  /** Children of node i: #child from #start[i] to #start[i + 1]. */
  readonly #start: Int32Array;
  readonly #child: Int32Array;

  /** Each node's parent, or -1; parents come before their children. */
  constructor(readonly parent: Int32Array) {
    const num = parent.length;
    this.numNodes = num;
    this.#depth = new Int32Array(num);
    this.#start = new Int32Array(num + 1);
    const roots: number[] = [];
    let maxDepth = 0;
    parent.forEach((up, i) => {
      if (up < 0 || up >= i) {
        roots.push(i);
        return;
      }
      const depth = (this.#depth[up] ?? 0) + 1;
      this.#depth[i] = depth;
      maxDepth = Math.max(maxDepth, depth);
      this.#start[up + 1] = (this.#start[up + 1] ?? 0) + 1;
    });
    for (let i = 0; i < num; i += 1) {
      this.#start[i + 1] = (this.#start[i + 1] ?? 0) + (this.#start[i] ?? 0);
    }
    this.#child = new Int32Array(this.#start[num] ?? 0);
    const filled = this.#start.slice();
    parent.forEach((up, i) => {
      if (up < 0 || up >= i) return;
      const slot = filled[up] ?? 0;
      this.#child[slot] = i;
      filled[up] = slot + 1;
    });
    this.roots = roots;
    this.maxDepth = maxDepth;
  }

  depth(id: number): number {
    return this.#depth[id] ?? 0;
  }

  numChildren(id: number): number {
    return (this.#start[id + 1] ?? 0) - (this.#start[id] ?? 0);
  }

  children(id: number): Int32Array {
    return this.#child.subarray(this.#start[id] ?? 0, this.#start[id + 1] ?? 0);
  }

  ancestors(id: number): readonly number[] {
    const ids: number[] = [];
    for (let up = this.parent[id] ?? -1; up >= 0; up = this.parent[up] ?? -1) {
      ids.push(up);
    }
    return ids.reverse();
  }
}

/** null: as they came. */
type NodeOrder = ((a: number, b: number) => number) | null;

export interface TreeFilter {
  readonly order: NodeOrder;
  readonly isExpanded: (id: number) => boolean;
  /** null: no search. */
  readonly matches: Uint8Array | null;
}

/** A search opens the way to its matches; below them the tree opens as usual. */
export function treeRows(tree: Tree, shown: TreeFilter): readonly TreeRow[] {
  const { order, isExpanded, matches } = shown;
  const wanted = matches === null ? null : withAncestors(tree, matches);
  const rows: TreeRow[] = [];
  // No recursion: trees may be deep.
  const stack: { readonly id: number; readonly inside: boolean }[] = [];
  const push = (ids: readonly number[], inside: boolean): void => {
    const kept = inside ? ids : ids.filter((id) => wanted?.[id] === 1);
    const sorted = order === null ? kept : [...kept].sort(order);
    for (let i = sorted.length - 1; i >= 0; i -= 1) {
      const id = sorted[i];
      if (id !== undefined) stack.push({ id, inside });
    }
  };
  push(tree.roots, wanted === null);
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { id } = next;
    const numChildren = tree.numChildren(id);
    const inside = next.inside || matches?.[id] === 1;
    // Between the root and a match every node is open.
    const leads = !inside || (wanted !== null && hasWantedChild(tree, id, wanted));
    const expanded = numChildren > 0 && (leads || isExpanded(id));
    rows.push({ id, depth: tree.depth(id), numChildren, expanded });
    if (expanded) push([...tree.children(id)], inside);
  }
  return rows;
}

function hasWantedChild(tree: Tree, id: number, wanted: Uint8Array): boolean {
  return tree.children(id).some((child) => wanted[child] === 1);
}

function withAncestors(tree: Tree, matches: Uint8Array): Uint8Array {
  const wanted = matches.slice();
  // Children come after parents, so one way back reaches every root.
  for (let i = wanted.length - 1; i >= 0; i -= 1) {
    const up = tree.parent[i] ?? -1;
    if (wanted[i] === 1 && up >= 0) wanted[up] = 1;
  }
  return wanted;
}

export function flatRows(
  tree: Tree,
  shown: Pick<TreeFilter, "order" | "matches">,
  maxDepth = Infinity,
): readonly TreeRow[] {
  const ids: number[] = [];
  for (let id = 0; id < tree.numNodes; id += 1) {
    if (shown.matches !== null && shown.matches[id] !== 1) continue;
    if (tree.depth(id) <= maxDepth) ids.push(id);
  }
  if (shown.order !== null) ids.sort(shown.order);
  return ids.map((id) => ({ id, depth: 0, numChildren: 0, expanded: false }));
}
