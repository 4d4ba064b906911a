import { describe, expect, it } from "vitest";
import { rangeWords, readRange } from "./params";

describe("readRange", () =>
  it.each([
    [
      { x0: "1", x1: "2.5" },
      { low: 1, high: 2.5 },
    ],
    [{ x0: "2", x1: "1" }, null],
    [{ x0: "1", x1: "1" }, null],
    [{ x0: "1" }, null],
    [{ x0: "a", x1: "b" }, null],
    [{ x0: "0", x1: "Infinity" }, null],
  ])("%o", (params, range) =>
    expect(readRange(new Map(Object.entries(params)))).toEqual(range),
  ));

describe("rangeWords", () =>
  it("comes back within a thousandth of the range", () => {
    for (const [low, span] of [
      [0, 3],
      [1e12, 5_000],
      [17.25, 0.01],
      [-5, 1e7],
    ] as const) {
      const pairs = Object.entries(rangeWords({ low, high: low + span }));
      const range = readRange(new Map(pairs.map(([name, text]) => [name, text ?? ""])));
      expect(Math.abs((range?.low ?? Infinity) - low)).toBeLessThanOrEqual(span / 1000);
      expect(Math.abs((range?.high ?? Infinity) - low - span)).toBeLessThanOrEqual(
        span / 1000,
      );
    }
  }));
