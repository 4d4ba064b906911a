import { expect, it } from "vitest";
import { pathsOf } from "./difference_tree";

it("names a row with those around it, so that equal names stay apart", () => {
  const names = ["Net_0", "Block_0", "aten::mm", "Block_1", "aten::mm", "in no module"];
  expect(pathsOf(Int32Array.of(-1, 0, 1, 0, 3, -1), names)).toEqual([
    "Net_0",
    "Net_0 / Block_0",
    "Net_0 / Block_0 / aten::mm",
    "Net_0 / Block_1",
    "Net_0 / Block_1 / aten::mm",
    "in no module",
  ]);
});
