/** Stacks as text: `file.py:3 function`, root first. */

import type { StacksResponse } from "../../api/types.gen";
import { CallStacks } from "./call_stacks";

const KINDS = [
  [/^\/torch\//, 2],
  [/^\/site\//, 1],
  [/\.cpp/, 3],
] as const;

export interface TestStack {
  readonly frames: readonly string[];
  readonly module?: string;
}

/** Below /torch: torch's; below /site: a library's; `.cpp`: native. */
export function stacksAnswer(stacks: readonly TestStack[]): StacksResponse {
  const strings: string[] = [];
  const text = (wanted: string): number => {
    const index = strings.indexOf(wanted);
    return index >= 0 ? index : strings.push(wanted) - 1;
  };
  const frames: string[] = [];
  const kindOf = (frame: string): number =>
    KINDS.find(([pattern]) => pattern.test(frame))?.[1] ?? 0;
  const rows = stacks.map((stack) =>
    [...stack.frames].reverse().map((frame) => {
      const index = frames.indexOf(frame);
      return index >= 0 ? index : frames.push(frame) - 1;
    }),
  );
  const parts = frames.map((frame) => {
    const [place = "", name = ""] = frame.split(" ");
    const [file = "", line = "0"] = place.split(":");
    return { file, line: Number(line), name };
  });
  const lengths = rows.map((row) => row.length);
  return {
    strings,
    name: Int32Array.from(parts, ({ name }) => text(name)),
    filename: Int32Array.from(parts, ({ file }) => text(file)),
    line: Int32Array.from(parts, ({ line }) => line),
    kind: Uint8Array.from(frames, kindOf),
    start: Int32Array.from([0, ...lengths.map((_, i) => sum(lengths.slice(0, i + 1)))]),
    frame: Int32Array.from(rows.flat()),
    userFrame: Int32Array.from(
      rows,
      (row) =>
        row.find((frame) => kindOf(frames[frame] ?? "") === 0) ??
        row.find((frame) => kindOf(frames[frame] ?? "") < 3) ??
        -1,
    ),
    module: Int32Array.from(stacks, ({ module }) =>
      module === undefined ? -1 : text(module),
    ),
    numStacks: stacks.length,
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export function testStacks(stacks: readonly TestStack[]): CallStacks {
  return new CallStacks(stacksAnswer(stacks));
}

/** A forward, an optimizer's step, and one without Python frames. */
export const TRAINING: readonly TestStack[] = [
  {
    frames: [
      "/home/me/train.py:9 main",
      "/home/me/model.py:3 forward",
      "/torch/nn.py:7 linear",
      "mm.cpp at::mm(Tensor)",
    ],
    module: "Linear",
  },
  {
    frames: [
      "/home/me/train.py:9 main",
      "/home/me/model.py:5 forward",
      "/site/flash.py:2 attention",
      "/torch/nn.py:7 linear",
    ],
    module: "Attention",
  },
  { frames: ["/home/me/train.py:12 main", "/torch/adam.py:44 step"] },
  {
    frames: [
      "/torch/autograd.py:8 backward",
      "engine.cpp torch::autograd::Engine::run(int)",
    ],
  },
];
