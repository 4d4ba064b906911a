import { expect, it } from "vitest";
import type { TableRows } from "../../../api/types.gen";
import { partColour } from "../../../render/palette";
import { declared } from "../../shared/table/test_tables";
import { largestParts } from "./largest_bar";

function tableOf(ms: readonly number[], sum: number, numAll = ms.length): TableRows {
  const names = ms.map((_, row) => `aten::op_${row}`);
  return {
    title: "Operators",
    summary: "",
    empty: "",
    columns: [
      declared({ key: "name", title: "", help: "", unit: "name", texts: names }),
      declared({
        key: "self_ms",
        title: "",
        help: "",
        unit: "ms",
        numbers: Float64Array.from(ms),
        bar: "kernel",
        sum,
      }),
    ],
    numRows: ms.length,
    numAll,
    usual: "self_ms",
    colours: [],
  };
}

it("shows the largest first, and all that is small or was not sent as the rest", () => {
  const parts = largestParts(tableOf([1, 60, 30, NaN], 100, 50), "light");
  expect(parts.map(({ row, name }) => [row, name])).toEqual([
    [1, "aten::op_1"],
    [2, "aten::op_2"],
    [null, "48 others"],
  ]);
  expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
});

it("colours what is no computation by its kind", () => {
  const table = { ...tableOf([60, 40], 100), colours: ["", "communication"] };
  const [first, second] = largestParts(table, "light");
  expect(first?.colour).toBe(partColour("light", "kernel"));
  expect(second?.colour).toBe(partColour("light", "communication"));
});

it("has no rest where the rows are all, and nothing where nothing took any time", () => {
  const parts = largestParts(tableOf([25, 75], 100), "dark");
  expect(parts.map(({ share }) => share)).toEqual([0.75, 0.25]);
  expect(largestParts(tableOf([0, 0], 0), "dark")).toEqual([]);
});
