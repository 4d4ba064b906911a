import { describe, expect, test } from "vitest";
import {
  boxAt,
  buildFlame,
  flameBoxes,
  frameTotals,
  ROOT_FRAME,
  sandwich,
} from "./flame_tree";

const PATHS = [[1, 2, 3], [1, 2, 4], [1, 5], [-1]];
const WEIGHTS = [10, 40, 30, 5];

describe("flame tree", () => {
  test("children stand heaviest first, parents before them", () => {
    const tree = buildFlame(PATHS, WEIGHTS);
    expect([...tree.frame]).toEqual([ROOT_FRAME, 1, 2, 4, 3, 5, -1]);
    expect(Array.from(tree.frame, (_, node) => tree.depth(node))).toEqual([
      0, 1, 2, 3, 3, 2, 1,
    ]);
    expect([...tree.end]).toEqual([7, 6, 5, 4, 5, 6, 7]);
    expect([...tree.leaf]).toEqual([4, 3, 5, 6]);
    expect(tree.maxDepth).toBe(3);
  });

  test("sums reach the root, whatever bytes come later", () => {
    const tree = buildFlame(PATHS, WEIGHTS);
    expect([...tree.sums(WEIGHTS)]).toEqual([85, 80, 50, 40, 10, 30, 5]);
    expect([...tree.sums([1, 0, 0, 1])]).toEqual([2, 1, 1, 0, 1, 0, 1]);
  });

  test("a path that ends where another goes on holds bytes of its own", () => {
    const tree = buildFlame([[1], [1, 2]], [3, 4]);
    expect([...tree.sums([3, 4])]).toEqual([7, 7, 4]);
  });

  test("boxes of a level lie side by side inside their parent", () => {
    const tree = buildFlame(PATHS, WEIGHTS);
    const boxes = flameBoxes(tree, tree.sums(WEIGHTS), 0, 0);
    expect(boxes).toHaveLength(7);
    expect(Math.max(...boxes.map(({ row }) => row))).toBe(3);
    const of = (node: number): [number, number] => {
      const { x, width } = boxes.find((box) => box.node === node) ?? {};
      return [(x ?? NaN) * 85, (width ?? NaN) * 85];
    };
    expect(of(5).map(Math.round)).toEqual([50, 30]);
    expect(of(4).map(Math.round)).toEqual([40, 10]);
    expect(of(6).map(Math.round)).toEqual([80, 5]);
  });

  test("what is too narrow is left out with all below it, and takes its room", () => {
    const tree = buildFlame(PATHS, WEIGHTS);
    const boxes = flameBoxes(tree, tree.sums([0.1, 0, 99, 0.9]), 0, 0.005);
    expect(boxes.map(({ node }) => node)).toEqual([0, 1, 5, 6]);
    expect(boxes[2]?.x).toBeCloseTo(0.001);
  });

  test("zoomed in, the ancestors take the whole width", () => {
    const tree = buildFlame(PATHS, WEIGHTS);
    const boxes = flameBoxes(tree, tree.sums(WEIGHTS), 2, 0);
    expect(boxes.map(({ node }) => node)).toEqual([0, 1, 2, 3, 4]);
    expect(boxes.map(({ width }) => width).slice(0, 3)).toEqual([1, 1, 1]);
    expect(boxes[3]?.width).toBeCloseTo(0.8);
    expect(boxAt(boxes, 0.9, 3)).toBe(boxes[4]);
    expect(boxAt(boxes, 0.9, 9)).toBeUndefined();
  });

  test("a path finds the same node in another tree", () => {
    const tree = buildFlame(PATHS, WEIGHTS);
    const other = buildFlame(
      [
        [1, 5],
        [1, 2, 4],
      ],
      [1, 2],
    );
    expect(other.find(tree.path(3))).toBe(3);
    expect(other.find(tree.path(6))).toBeNull();
    expect(other.find([])).toBe(0);
  });

  test("nothing is a root alone", () => {
    const tree = buildFlame([], []);
    expect(tree.numNodes).toBe(1);
    expect(flameBoxes(tree, tree.sums([]), 0, 0)).toEqual([]);
  });
});

const SIDES = [
  [1, 2, 3],
  [4, 2, 3],
  [1, 5],
  [1, 2, 6, 2, 7],
];
const HELD = [10, 20, 40, 80];

describe("sandwich", () => {
  test("callers and callees of a frame hold the same bytes", () => {
    const { callers, callees, slots } = sandwich(SIDES, HELD, 2);
    expect([...slots]).toEqual([0, 1, 3]);
    const own = Array.from(slots, (slot) => HELD[slot] ?? 0);
    expect(callers.sums(own)[0]).toBe(110);
    expect(callees.sums(own)[0]).toBe(110);
    // 1 calls it with 90, 4 with 20.
    expect([...callers.frame]).toEqual([-3, 2, 1, 4]);
    expect([...callers.sums(own)]).toEqual([110, 110, 90, 20]);
  });

  test("of a recursion the outermost counts, so no byte counts twice", () => {
    const { callees } = sandwich([[1, 2, 6, 2, 7]], [80], 2);
    expect([...callees.frame]).toEqual([-3, 2, 6, 2, 7]);
    expect([...callees.sums([80])]).toEqual([80, 80, 80, 80, 80]);
  });

  test("totals count a stack once for each frame, itself only at the leaf", () => {
    const totals = frameTotals(SIDES, HELD);
    expect(totals.slice(0, 2)).toEqual([
      { frame: 1, totalBytes: 130, selfBytes: 0 },
      { frame: 2, totalBytes: 110, selfBytes: 0 },
    ]);
    expect(totals.find(({ frame }) => frame === 3)?.selfBytes).toBe(30);
  });
});
