import { describe, expect, it } from "vitest";
import { mostWords } from "./most";

describe("mostWords", () => {
  it("names what takes most, and of how much, in whatever order rows are", () => {
    const names = ["aten::mm", "void gemm<int>(a)", "aten::add"];
    const ms = Float64Array.of(1, 7.5, NaN);
    expect(mostWords({ names, ms, sumMs: 10, of: "of the device’s time" })).toBe(
      "gemm<…> takes 75.0 % of the device’s time: 7.50 ms of 10.0 ms.",
    );
  });

  it("says nothing of nothing", () => {
    const shares = { names: ["a"], sumMs: 0, of: "" };
    expect(mostWords({ ...shares, ms: Float64Array.of(0) })).toBe("");
    expect(mostWords({ ...shares, names: [], ms: new Float64Array() })).toBe("");
  });
});
