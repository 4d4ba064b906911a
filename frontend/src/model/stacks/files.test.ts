import { expect, test } from "vitest";
import { foldedStacks, speedscope } from "./files";
import { testStacks, TRAINING } from "./test_stacks";

const stacks = testStacks(TRAINING);
const HELD = { stack: [0, 1, -1, 2, 0], stackBytes: [100, 50, 7, 0, 1] };

test("folded: one line for each path, equal ones summed up, nothing of zero bytes", () =>
  expect(foldedStacks(stacks, HELD, "user")).toBe(
    "train.py:9 main;model.py:3 forward 101\n" +
      "train.py:9 main;model.py:5 forward 50\n" +
      "no stack recorded 7\n",
  ));

test("folded: what parts frames and lines cannot stand in a name", () => {
  const odd = testStacks([{ frames: ["/x.py:1 a;b\nc"] }]);
  expect(foldedStacks(odd, { stack: [0], stackBytes: [1] }, "user")).toBe(
    "x.py:1 a,b c 1\n",
  );
});

test("speedscope: samples from the root to the leaf, bytes as weights", () => {
  const file = JSON.parse(speedscope(stacks, HELD, "all", "rank 0")) as {
    shared: { frames: { name: string; file?: string; line?: number }[] };
    profiles: {
      samples: number[][];
      weights: number[];
      unit: string;
      endValue: number;
    }[];
  };
  const [profile] = file.profiles;
  expect(profile?.unit).toBe("bytes");
  expect(profile?.weights).toEqual([100, 50, 7, 1]);
  expect(profile?.endValue).toBe(158);
  const names = profile?.samples[0]?.map((row) => file.shared.frames[row]?.name);
  expect(names).toEqual(["main", "forward", "linear", "at::mm(Tensor)"]);
  expect(file.shared.frames[1]).toEqual({
    name: "forward",
    file: "/home/me/model.py",
    line: 3,
  });
});
