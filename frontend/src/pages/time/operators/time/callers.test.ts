import { describe, expect, it } from "vitest";
import type { OperatorStack } from "../../../../api/types.gen";
import { flameBoxes } from "../../../../model/stacks/flame_tree";
import { callersOf, frameLabel, type Side, type Weight } from "./callers";

type Stacks = readonly OperatorStack[];

/** Boxes of all rows but the root's, in ms where they are times. */
function boxesOf({ data, names, weight }: Side) {
  const { tree, values } = data;
  const boxes = flameBoxes(tree, values, 0, 0.002).map(({ node, x, width, row }) => ({
    frame: names.frameLabel(tree.frame[node] ?? -1),
    x,
    width,
    row: row - 1,
    label: names.boxLabel(tree.frame[node] ?? -1),
    value: (values[node] ?? 0) * (weight === "calls" ? 1 : 1e3),
  }));
  return boxes.filter((box) => box.row >= 0);
}

const callerBoxes = (stacks: Stacks, weight: Weight) =>
  boxesOf(callersOf(stacks, [], weight, false).callers);

function sandwich(stacks: Stacks, callees: Stacks, weight: Weight) {
  const { callers, below } = callersOf(stacks, callees, weight, true);
  return {
    callers: boxesOf(callers),
    callees: below === null ? [] : boxesOf(below),
    weight: below?.weight,
    whole: 1e3 * (below?.data.values[0] ?? NaN),
  };
}

function stack(frames: string[], numCalls: number, hostMs: number, deviceMs = 0) {
  return { frames, numCalls, hostMs, deviceMs };
}

const MAIN = "train.py(1): <module>";
const STEP = "train.py(9): step";

describe("callerBoxes", () => {
  const stacks = [
    stack(["net.py(5): forward", STEP, MAIN], 2, 30),
    stack(["loss.py(7): loss", STEP, MAIN], 6, 10, 4),
  ];

  it("puts callers above what they call, without what all begin with", () =>
    expect(callerBoxes(stacks, "host")).toEqual([
      { frame: STEP, label: "step  train.py:9", x: 0, width: 1, row: 0, value: 40 },
      {
        frame: "net.py(5): forward",
        label: "forward  net.py:5",
        x: 0,
        width: 0.75,
        row: 1,
        value: 30,
      },
      {
        frame: "loss.py(7): loss",
        label: "loss  loss.py:7",
        x: 0.75,
        width: 0.25,
        row: 1,
        value: 10,
      },
    ]));

  it("has widths by what is asked for", () => {
    const calls = callerBoxes(stacks, "calls").map(({ value }) => value);
    expect(calls).toEqual([8, 6, 2]);
    const device = callerBoxes(stacks, "device").map(({ frame }) => frame);
    expect(device).toEqual([STEP, "loss.py(7): loss"]);
  });

  it("shows nothing where there is nothing", () => {
    expect(callerBoxes([], "host")).toEqual([]);
    expect(callerBoxes([stack([], 3, 5)], "host")).toEqual([]);
    expect(callerBoxes([stack([MAIN], 3, 0)], "host")).toEqual([]);
  });

  it("keeps one stack's last caller, and recursion apart", () => {
    const boxes = callerBoxes([stack([MAIN, MAIN], 1, 5), stack([], 1, 5)], "host");
    expect(boxes.map(({ row, width }) => [row, width])).toEqual([
      [0, 0.5],
      [1, 0.5],
    ]);
    expect(callerBoxes([stack([STEP, MAIN], 1, 5)], "host")).toHaveLength(1);
  });
});

describe("sandwich", () => {
  const stacks = [
    stack(["linear.py(5): forward", "net.py(5): forward", STEP, MAIN], 2, 30, 4),
    stack(["linear.py(5): forward", "loss.py(7): loss", STEP, MAIN], 6, 10),
  ];
  const callees = [
    stack([], 10, 10, 1),
    stack(["aten::addmm"], 20, 30, 7),
    stack(["aten::addmm", "cudaLaunchKernel"], 20, 10),
  ];
  const places = (boxes: readonly { frame: string; row: number; width: number }[]) =>
    boxes.map(({ frame, row, width }) => [frame.split(":")[0], row, +width.toFixed(3)]);

  it("merges from the operator to both sides, as wide as all its calls", () => {
    const sides = sandwich(stacks, callees, "host");
    expect(sides.whole).toBe(50);
    expect(places(sides.callers)).toEqual([
      ["linear.py(5)", 0, 0.8],
      ["net.py(5)", 1, 0.6],
      ["train.py(9)", 2, 0.6],
      ["loss.py(7)", 1, 0.2],
      ["train.py(9)", 2, 0.2],
    ]);
    expect(places(sides.callees)).toEqual([
      ["aten", 0, 0.8],
      ["cudaLaunchKernel", 1, 0.2],
    ]);
  });

  it("has callees by host time where calls are counted", () => {
    const sides = sandwich(stacks, callees, "calls");
    expect([sides.weight, sides.whole]).toEqual(["host", 50]);
    expect(sides.callers[0]?.width).toBe(0.8);
    expect(sandwich(stacks, callees, "device").callees[0]?.value).toBe(7);
  });

  it("shows callees where there are no stacks, and nothing of nothing", () => {
    expect(sandwich([], callees, "host").callers).toEqual([]);
    expect(sandwich([], callees, "host").callees).toHaveLength(2);
    expect(sandwich([], [], "host").callees).toEqual([]);
  });
});

describe("frameLabel", () =>
  it.each([
    ["/repo/net.py(5): forward", "forward  net.py:5"],
    ["nn.Module: Linear_0", "nn.Module: Linear_0"],
  ])("%s", (frame, label) => expect(frameLabel(frame)).toBe(label)));
