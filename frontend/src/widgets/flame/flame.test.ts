import { describe, expect, it } from "vitest";
import { buildFlame } from "../../model/stacks/flame_tree";
import { testStacks, TRAINING } from "../../model/stacks/test_stacks";
import { flameFigure, flameTable, rowAt, rowTop } from "./paint";
import {
  changeFills,
  changeShare,
  changeStep,
  FlameLabels,
  foundBytes,
  nodeColours,
  ROW_PX,
  zoomedNode,
  type FlameData,
} from "./layout";

const PATHS = [[1, 2], [1, 3], [4]];
const BYTES = [60, 40, 10];

describe("a flamegraph", () => {
  const tree = buildFlame(PATHS, BYTES);

  it("colours a node by most of its bytes, and mixtures by none", () => {
    const own = nodeColours(tree, [0, 1, 1], BYTES, 2);
    // Root and frame 1 hold 60 of 110 and 60 of 100 of the first colour.
    expect([...own]).toEqual([2, 2, 0, 1, 1]);
    expect(nodeColours(tree, [0, 0, 1], BYTES, 2)[0]).toBe(0);
    expect([...nodeColours(tree, [-1, -1, -1], BYTES, 2)]).toEqual([2, 2, 2, 2, 2]);
  });

  it("follows a zoom into another tree as far as it goes", () => {
    expect(zoomedNode(tree, [1, 3])).toBe(3);
    expect(zoomedNode(tree, [1, 9])).toBe(1);
    expect(zoomedNode(tree, [9])).toBe(0);
  });

  it("counts what was found once, though a caller and its callee both match", () => {
    const frameMatches = new Uint8Array(5);
    frameMatches[1] = 1;
    frameMatches[2] = 1;
    frameMatches[4] = 1;
    const data = {
      tree,
      values: tree.sums(BYTES),
      colour: new Uint8Array(5),
      palette: [],
      change: null,
      title: "",
    };
    expect(foundBytes(data, frameMatches, 0)).toBe(110);
    frameMatches[1] = 0;
    expect(foundBytes(data, frameMatches, 0)).toBe(70);
    expect(foundBytes(data, frameMatches, 3)).toBe(0);
  });

  it("reads a change as a share of the larger side", () => {
    expect(changeShare(0, 10)).toBe(1);
    expect(changeShare(10, 0)).toBe(-1);
    expect(changeShare(10, 5)).toBe(-0.5);
    expect(changeShare(0, 0)).toBe(0);
    expect([changeStep(10, 0), changeStep(10, 10), changeStep(0, 1)]).toEqual([
      0, 10, 20,
    ]);
  });

  it("stands rows from the top, or from the bottom upwards", () => {
    const down = { upwards: false, hideRoot: false, totalPx: 90 };
    expect(rowTop(2, down)).toBe(36);
    expect(rowAt(40, down)).toBe(2);
    const up = { upwards: true, hideRoot: true, totalPx: 90 };
    expect(rowTop(1, up)).toBe(72);
    expect(rowAt(80, up)).toBe(1);
  });

  const data = {
    tree,
    values: tree.sums(BYTES),
    colour: new Uint8Array(tree.numNodes),
    palette: ["#ff0000"],
    change: null,
    title: "live at event 3",
  };
  const changed = {
    ...data,
    change: { before: tree.sums([60, 0, 10]), after: tree.sums([20, 40, 10]) },
    title: "B against A",
  };
  const figure = (data: FlameData, zoom: readonly number[] = []) =>
    flameFigure({
      data,
      stacks: testStacks(TRAINING),
      zoom,
      title: "run & <title>",
      key: [["#0000ff", "less in B"]],
      theme: "light",
      byteUnit: "auto",
      widthPx: 1100,
    });

  it("becomes a file of all its rows, whatever is scrolled away", () => {
    const made = figure(data);
    expect(made.heightPx).toBeGreaterThan(3 * ROW_PX + 30);
    expect(made.svg).toContain("run &amp; &lt;title&gt;");
    expect(made.svg).toContain("live at event 3: 110 B");
    // The background, the root, four frames, and the key's.
    expect(made.svg.match(/<rect/g)).toHaveLength(7);
    expect(made.svg).toContain('x="1000" y="18" width="99"');
    expect(figure(data, [4]).svg.match(/<rect/g)).toHaveLength(4);
  });

  it("has the colours of the change in its file, and both sides in its table", () => {
    const [less] = changeFills("light");
    expect(figure(changed).svg).toContain("B against A: 0 B");
    const gone = {
      ...changed,
      change: { before: tree.sums(BYTES), after: tree.sums([0, 0, 10]) },
    };
    expect(figure(gone).svg).toContain(less);
    const table = flameTable(changed, testStacks(TRAINING));
    const [stack, before, after] = table.columns.map(({ values }) =>
      Array.from<unknown>(values),
    );
    expect(table.columns.map(({ name }) => name)).toEqual([
      "stack",
      "before_bytes",
      "after_bytes",
    ]);
    expect(before).toEqual([60, 0, 10]);
    expect(after).toEqual([20, 40, 10]);
    expect(stack?.[0]).toContain(";");
    expect(flameTable(data, testStacks(TRAINING)).numRows).toBe(3);
  });

  it("cuts labels to their boxes and leaves out what says nothing", () => {
    const labels = new FlameLabels(testStacks(TRAINING), (text) => text.length * 6);
    const whole = labels.fitting(1, 400);
    expect(whole).toBe("linear  nn.py:7");
    expect(labels.fitting(1, 60)).toBe("linear  n…");
    expect(labels.fitting(1, 14)).toBe("");
  });
});
