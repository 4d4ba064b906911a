/** An answer of `/modules` for tests: Net > (layers > (0, 1), head). */

import type { ModulesResponse, RunSummary } from "../../../api/types.gen";

export const RUN: RunSummary = {
  id: "r",
  name: "job",
  numRanks: 2,
  worldSize: 2,
  numAttempts: 1,
  firstMs: 0,
  lastMs: 1,
  lastStep: 1,
  live: false,
  simulated: false,
  virtualGpu: "",
  deviceType: "cuda",
  numProblems: 0,
  imported: false,
  madeOf: "recording",
};

const WINDOW = {
  id: "w1",
  words: "step 7, iteration 2",
  group: "step",
  function: "step",
  phase: "train",
  iteration: 2,
  attempt: 1,
  step: 7,
  timeMs: 1000,
  numRanks: 2,
};

export function modulesOf(changes: Partial<ModulesResponse> = {}): ModulesResponse {
  return {
    run: RUN,
    windows: [WINDOW],
    numWindows: 1,
    window: "w1",
    ranks: Int32Array.of(0, 1),
    rank: 1,
    state: "after_post_forward",
    states: [
      {
        state: "before_pre_forward",
        words: "before pre-forward",
        group: "Forward of each module",
      },
      {
        state: "after_post_forward",
        words: "after post-forward",
        group: "Forward of each module",
      },
      {
        state: "window_peak",
        words: "peak of the step",
        group: "One moment for all modules",
      },
    ],
    call: null,
    maxCalls: 1,
    device: "cuda:0",
    devices: ["cuda:0"],
    measure: "held",
    facts: null,
    factWords: [],
    caveats: [],
    lead: null,
    baseline: null,
    tree: {
      names: ["Net", "layers", "0", "1", "head"],
      name: Int32Array.of(0, 1, 2, 3, 4),
      types: ["Net", "ModuleList", "Block", "Linear"],
      type: Int32Array.of(0, 1, 2, 2, 3),
      parent: Int32Array.of(-1, 0, 1, 1, 0),
      isFsdp: Uint8Array.of(1, 0, 1, 1, 0),
      paramBytes: Float64Array.of(0, 0, 10, 10, 4),
      bufferBytes: Float64Array.of(0, 0, 0, 0, 0),
      numEqual: Int32Array.of(0, 2, 0, 0, 0),
      fold: Int32Array.of(-1, -1, -1, -1, -1),
    },
    numCalls: Int32Array.of(1, 0, 1, 1, 1),
    callShown: Int32Array.of(0, -1, 0, 0, 0),
    timeUs: Float64Array.of(50, NaN, 20, 30, 40),
    totalBytes: Float64Array.of(100, NaN, 60, 90, 95),
    heldBytes: Float64Array.of(80, NaN, 20, 40, 10),
    ownBytes: Float64Array.of(10, NaN, 20, 40, 10),
    split: null,
    baselineTotalBytes: null,
    baselineHeldBytes: null,
    baselineOwnBytes: null,
    categories: [
      category("sharded_param", "param", [40, NaN, 40, 40, 40]),
      category("activation", "activation", [60, NaN, 20, 50, 55]),
      category("temp", "temp", [0, NaN, 0, 0, 0]),
    ],
    absent: [],
    problems: [],
    ...changes,
  };
}

function category(
  name: string,
  group: "param" | "activation" | "temp",
  bytes: readonly number[],
): ModulesResponse["categories"][number] {
  return { name, group, bytes: Float64Array.from(bytes), baselineBytes: null };
}
