import { describe, expect, it } from "vitest";
import { orderBy } from "./shown_rows";
import { flatRows, Tree, treeRows, type TreeRow } from "./tree";

/*  0
 *  ├─ 1
 *  │  ├─ 3
 *  │  └─ 4 ─ 6
 *  └─ 2 ─ 5
 */
const TREE = new Tree(Int32Array.of(-1, 0, 0, 1, 1, 2, 4));
const OPEN = (): boolean => true;
const SHUT = (): boolean => false;

function ids(rows: readonly TreeRow[]): readonly number[] {
  return rows.map((row) => row.id);
}

function matching(...nodes: readonly number[]): Uint8Array {
  const matches = new Uint8Array(TREE.numNodes);
  for (const node of nodes) matches[node] = 1;
  return matches;
}

describe("Tree", () => {
  it("knows depths, children and the way up", () => {
    expect(TREE.maxDepth).toBe(3);
    expect([...TREE.children(1)]).toEqual([3, 4]);
    expect(TREE.numChildren(6)).toBe(0);
    expect(TREE.ancestors(6)).toEqual([0, 1, 4]);
  });

  it("takes a node that names a later one, or itself, as a root", () => {
    const broken = new Tree(Int32Array.of(-1, 1, 5, -7));
    expect(broken.roots).toEqual([0, 1, 2, 3]);
  });
});

describe("treeRows", () => {
  const shown = { order: null, isExpanded: OPEN, matches: null };

  it("shows roots alone where all is collapsed", () => {
    const rows = treeRows(TREE, { ...shown, isExpanded: SHUT });
    expect(rows).toEqual([{ id: 0, depth: 0, numChildren: 2, expanded: false }]);
  });

  it("goes down before it goes on, sorted among siblings only", () => {
    expect(ids(treeRows(TREE, shown))).toEqual([0, 1, 3, 4, 6, 2, 5]);
    const values = [0, 1, 2, 3, 4, 5, 6];
    const order = orderBy(values, true);
    expect(ids(treeRows(TREE, { ...shown, order }))).toEqual([0, 2, 5, 1, 4, 6, 3]);
  });

  it("opens the way to what is searched for and hides the rest", () => {
    const search = { ...shown, isExpanded: SHUT, matches: matching(6) };
    expect(ids(treeRows(TREE, search))).toEqual([0, 1, 4, 6]);
  });

  it("keeps what is below a match reachable", () => {
    const search = { ...shown, matches: matching(1) };
    expect(ids(treeRows(TREE, search))).toEqual([0, 1, 3, 4, 6]);
    const shut = treeRows(TREE, { ...search, isExpanded: SHUT });
    expect(ids(shut)).toEqual([0, 1]);
    expect(shut[1]).toMatchObject({ numChildren: 2, expanded: false });
  });

  it("shows nothing where nothing matches", () =>
    expect(treeRows(TREE, { ...shown, matches: matching() })).toEqual([]));

  it("stands trees as deep as they are long", () => {
    const deep = new Tree(Int32Array.from({ length: 50_000 }, (_, i) => i - 1));
    expect(treeRows(deep, shown)).toHaveLength(50_000);
  });
});

describe("flatRows", () =>
  it("lists every node once, down to a depth, in order", () => {
    const order = orderBy([5, 1, 9, NaN, 2, 2, 0], false);
    const all = flatRows(TREE, { order, matches: null });
    expect(ids(all)).toEqual([6, 1, 4, 5, 0, 2, 3]);
    const shallow = flatRows(TREE, { order: null, matches: matching(1, 6) }, 1);
    expect(ids(shallow)).toEqual([1]);
  }));

describe("orderBy", () =>
  it("puts absence last in both directions", () => {
    const values = [NaN, 1, 2];
    expect([0, 1, 2].sort(orderBy(values, true))).toEqual([2, 1, 0]);
    expect([0, 1, 2].sort(orderBy(values, false))).toEqual([1, 2, 0]);
  }));
