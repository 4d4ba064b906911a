import { describe, expect, it } from "vitest";
import { rangeWords, readX } from "./params";

describe("readX", () => {
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
  ])("%o", (words, range) =>
    expect(readX(new Map(Object.entries(words)))).toEqual({ x: "step", range }),
  );

  it("takes no other axis than there is", () => {
    expect(readX(new Map([["x", "wall"]])).x).toBe("wall");
    expect(readX(new Map([["x", "day"]])).x).toBe("step");
  });

  it("leaves the axis to the view, but never reads a range of steps as time", () => {
    const range = [
      ["x0", "5"],
      ["x1", "9"],
    ] as const;
    expect(readX(new Map(), "relative").x).toBe("relative");
    expect(readX(new Map([["x", "step"]]), "relative").x).toBe("step");
    expect(readX(new Map(range), "relative").x).toBe("step");
    expect(readX(new Map([...range, ["x", "wall"]]), "relative").x).toBe("wall");
  });
});

describe("rangeWords", () =>
  it("comes back within a thousandth of the range", () => {
    for (const [low, span] of [
      [0, 3],
      [1e12, 5_000],
      [17.25, 0.01],
      [-5, 1e7],
    ] as const) {
      const words = Object.entries(rangeWords({ low, high: low + span }));
      const range = readX(
        new Map(words.map(([name, text]) => [name, text ?? ""])),
      ).range;
      expect(Math.abs((range?.low ?? Infinity) - low)).toBeLessThanOrEqual(span / 1000);
      expect(Math.abs((range?.high ?? Infinity) - low - span)).toBeLessThanOrEqual(
        span / 1000,
      );
    }
  }));
