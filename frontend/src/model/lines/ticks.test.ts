import { describe, expect, it } from "vitest";
import {
  byteTicks,
  decimalTicks,
  logTicks,
  timeStep,
  timeTicks,
  wholeTicks,
} from "./ticks";

const GIB = 2 ** 30;

describe("byteTicks", () => {
  it("steps in powers of two and stays in range and in number", () => {
    for (const high of [3, 700, 5 * GIB, 79.2 * GIB, 3e15]) {
      for (const most of [3, 6, 11]) {
        const { step, values } = byteTicks(0, high, most);
        expect(Number.isInteger(Math.log2(step))).toBe(true);
        expect(values.length).toBeLessThanOrEqual(most + 1);
        expect(values.length).toBeGreaterThanOrEqual(Math.min(most, high) / 2);
        expect(values.every((v) => v >= 0 && v <= high && v % step === 0)).toBe(true);
      }
    }
  });

  it("puts 16 GiB steps on an 80 GiB card", () =>
    expect(byteTicks(0, 80 * GIB, 6).values.map((v) => v / GIB)).toEqual([
      0, 16, 32, 48, 64, 80,
    ]));
});

describe("decimalTicks", () => {
  it("steps by 1, 2 or 5 and hits the ends exactly", () => {
    expect(decimalTicks(0, 1, 5).values).toEqual([
      0,
      0.2,
      0.4,
      expect.closeTo(0.6, 12),
      0.8,
      1,
    ]);
    expect(decimalTicks(-3, 3, 4).values).toEqual([-2, expect.closeTo(0, 12), 2]);
  });

  it("answers an empty or broken range without hanging", () => {
    expect(decimalTicks(5, 5, 5).values).toEqual([5]);
    expect(decimalTicks(NaN, 1, 5).values).toEqual([]);
    expect(decimalTicks(2, 1, 5).values).toEqual([]);
  });
});

describe("wholeTicks", () =>
  it("never marks part of a step", () =>
    expect(wholeTicks(0.5, 3.5, 30).values).toEqual([1, 2, 3])));

describe("timeTicks", () => {
  it("uses steps of the clock", () => {
    expect(timeStep(0, 3_600_000, 6)).toBe(600_000);
    expect(timeStep(0, 86_400_000, 8)).toBe(3 * 3_600_000);
  });

  it("puts midnight of the local clock on a tick", () => {
    const offset = 5.5 * 3_600_000;
    const midnight = Date.UTC(2026, 0, 2) - offset;
    const { values } = timeTicks(midnight - 4e7, midnight + 4e7, 4, offset);
    expect(values).toContain(midnight);
  });
});

describe("logTicks", () =>
  it("marks powers only, thinned to what fits", () => {
    expect(logTicks(1, 1000, 10, 10)).toEqual([1, 10, 100, 1000]);
    const values = logTicks(1, 2 ** 40, 5, 2);
    expect(values.length).toBeLessThanOrEqual(5);
    expect(values.every((v) => Number.isInteger(Math.log2(v)))).toBe(true);
    expect(logTicks(0, 10, 5, 10)).toEqual([]);
  }));
