import { describe, expect, it } from "vitest";
import type { AllocationBlockResponse, HistoryFacts } from "../../../api/types.gen";
import { testStacks, TRAINING } from "../../../model/stacks/test_stacks";
import { testDevice } from "../../../widgets/block_stack/test_tile";
import { blockDetail } from "./rest";

const stacks = testStacks(TRAINING);

const FACTS: HistoryFacts = {
  devices: [testDevice()],
  defaultDevice: 0,
  streams: ["default", "0x1f"],
  pools: ["default", "(0, 3)"],
  settings: [],
  numStacks: stacks.numStacks,
  hasTensors: false,
  oddities: [],
};

const BLOCK: AllocationBlockResponse = {
  device: 0,
  life: 7,
  name: "b1000_2",
  address: "1000",
  sizeBytes: 1000,
  isRounded: false,
  blockBytes: 1024,
  born: { moment: 12, timeMs: null, step: 3, phase: "train" },
  freed: null,
  gone: null,
  stream: 1,
  pool: 1,
  stack: 0,
  category: "activation",
  evidence: "",
  tensor: "",
  tag: "",
  compileContext: "",
  numSiblings: 4,
  siblingBytes: 4096,
  numEver: 9,
  segmentAddress: "",
  segmentBytes: null,
};

function rowsOf(changes: Partial<AllocationBlockResponse>): Record<string, string> {
  return Object.fromEntries(
    blockDetail({ ...BLOCK, ...changes }, FACTS, stacks, "auto").rows,
  );
}

describe("what a card says at rest", () => {
  it("is rounding, step, stream, pool and the others of its stack", () =>
    expect(rowsOf({})).toEqual({
      takes: "1.00 KiB, rounding adds 24 B",
      "born in": "step 3, train",
      stream: "0x1f",
      pool: "(0, 3)",
      "same stack": "4 others live, 4.00 KiB; 9 in all",
    }));

  it("says what is not known instead of a size that was not asked for", () => {
    expect(rowsOf({ isRounded: true })["size"]).toContain("not known");
    expect(rowsOf({ blockBytes: 1000 })["takes"]).toContain("nothing was rounded");
  });

  it("leaves out what nobody recorded", () => {
    const rows = rowsOf({ born: null, stream: null, pool: null, stack: null });
    expect(Object.keys(rows)).toEqual(["takes"]);
  });

  it("names the tensor that the training knew it by", () =>
    expect(rowsOf({ tensor: "layers.0.weight" })["tensor"]).toBe("layers.0.weight"));

  it("shows the innermost frames and counts the others", () => {
    const { frames, numMore } = blockDetail(BLOCK, FACTS, stacks, "auto");
    const path = stacks.path(0, "python");
    expect(frames[0]).toBe(stacks.frameLabel(path.at(-1) ?? -1));
    expect(frames.length + numMore).toBe(path.length);
    expect(
      blockDetail({ ...BLOCK, stack: null }, FACTS, stacks, "auto").frames,
    ).toEqual([]);
  });
});
