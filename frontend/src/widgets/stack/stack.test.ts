import { describe, expect, it } from "vitest";
import type { ModuleSpans } from "../../api/types.gen";
import { columnAt, columnsWithin, topOf } from "./stack";
import { stackOf, type WindowAnswer } from "./window_stack";
import {
  boundaries,
  nearestBoundary,
  numRows,
  shortName,
  spanAt,
  spansOf,
} from "./spans";

const ANSWER = {
  x0: 100,
  xPerColumn: 10,
  totalBytes: Float64Array.of(30, 30, 50, 0),
  peakX: Float64Array.of(101, 111, 129, 130),
  categories: [
    {
      name: "param",
      group: "param",
      bytes: Float64Array.of(20, 20, 20, 0),
    },
  ],
} as unknown as WindowAnswer;

describe("columns", () => {
  it("of a window are as wide as each other, and read where they are highest", () => {
    const data = stackOf(ANSWER, "light");
    expect(data.edges).toEqual([100, 110, 120, 130, 140]);
    expect(data.columnX).toBe(ANSWER.peakX);
    expect(data.layers[0]).toMatchObject({ name: "param", label: "Params" });
    expect(columnAt(data, 119.9)).toBe(1);
    expect(columnAt(data, 99)).toBe(-1);
    expect(columnAt(data, 140)).toBe(-1);
    expect(topOf(data, 100, 119, false).value).toBeCloseTo(32.4, 6);
    expect(topOf(data, 130, 140, false).value).toBe(1);
  });

  it("are found by x, however wide they are", () => {
    const uneven = { edges: Float64Array.of(0, 1, 100, 101) };
    expect([0.5, 1, 99, 100.5].map((x) => columnAt(uneven, x))).toEqual([0, 1, 1, 2]);
    expect(columnAt({ edges: new Float64Array() }, 0)).toBe(-1);
    expect(columnsWithin(uneven, 1, 100.5)).toEqual([1, 2]);
  });

  it("are cut where one would flatten all others, unless they are asked for whole", () => {
    const many = {
      edges: Float64Array.from({ length: 101 }, (_, i) => i),
      totals: Float64Array.from({ length: 100 }, (_, i) => (i === 50 ? 40 : 1)),
    };
    expect(topOf(many, 0, 100, true)).toEqual({ value: 2.5, cut: true });
    expect(topOf(many, 0, 100, false)).toEqual({ value: 40 * 1.08, cut: false });
    expect(topOf(many, 0, 40, true).cut).toBe(false);
    const isCounted = (column: number) => many.totals[column] !== 40;
    const some = topOf({ ...many, isCounted }, 0, 100, true);
    expect(some).toEqual({ value: 1.08, cut: true });
  });
});

const MODULE_SPANS: ModuleSpans = {
  modules: ["Net", "Net.layers.0"],
  module: Int32Array.of(0, 1, 0, 1),
  kinds: ["forward", "backward"],
  kind: Uint8Array.of(0, 0, 1, 1),
  call: Int32Array.of(0, 0, 0, 0),
  depth: Int32Array.of(0, 1, 0, 1),
  x0: Float64Array.of(0, 2, 10, 12),
  x1: Float64Array.of(9, 8, 20, 18),
  numLeftOut: 0,
};
const SPANS = spansOf(MODULE_SPANS);

describe("spans", () => {
  it("are found innermost first, or in the row pointed at", () => {
    expect(numRows(SPANS)).toBe(2);
    expect(spanAt(SPANS, 5, null)).toMatchObject({ module: "Net.layers.0", row: 1 });
    expect(spanAt(SPANS, 5, 0)).toMatchObject({ module: "Net" });
    expect(spanAt(SPANS, 9.5, null)).toBeNull();
  });

  it("give the nearest boundary with its module, state and call", () => {
    const all = boundaries(SPANS, [{ kind: "peak", x: 9.6 }]);
    expect(nearestBoundary(all, 7)).toMatchObject({
      module: "Net.layers.0",
      state: "after_post_forward",
    });
    expect(nearestBoundary(all, 11.5)).toMatchObject({ state: "before_pre_backward" });
    expect(nearestBoundary(all, 9.6)).toEqual({
      x: 9.6,
      state: "window_peak",
      module: null,
      call: null,
    });
    expect(nearestBoundary([], 1)).toBeNull();
  });

  it("stand in the row of their level, however their times overlap", () => {
    const late = {
      ...MODULE_SPANS,
      // The backward of the child begins before that of its parent.
      x0: Float64Array.of(0, 2, 10, 9.5),
      depth: Int32Array.of(0, 1, 1, 0),
    };
    expect(spansOf(late).map(({ module, row }) => [module, row])).toEqual([
      ["Net", 0],
      ["Net", 0],
      ["Net.layers.0", 1],
      ["Net.layers.0", 1],
    ]);
  });

  it("are named so that a number is not alone", () => {
    expect(shortName("Net.layers.3")).toBe("layers.3");
    expect(shortName("Net.layers.3.attn")).toBe("attn");
    expect(shortName("Net")).toBe("Net");
  });
});
