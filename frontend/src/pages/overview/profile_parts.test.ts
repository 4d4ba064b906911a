import { describe, expect, it } from "vitest";
import type { ProfileResponse } from "../../api/types.gen";
import {
  chosenStep,
  MOST_STEPS,
  partTimes,
  percent,
  stepBars,
  stepNumber,
} from "./profile_parts";

function profile(durations: readonly number[]): ProfileResponse {
  const half = Float64Array.from(durations, (one) => one / 2);
  return {
    step: Int32Array.from(durations, (_, index) => index + 5),
    durationMs: Float64Array.from(durations),
    parts: [
      { role: "kernel", ms: half, meanMs: 0, share: 0.5 },
      { role: "other", ms: half, meanMs: 0, share: 0.5 },
    ],
  } as unknown as ProfileResponse;
}

describe("stepBars", () => {
  it("stacks the parts of each step, measured by the longest", () => {
    const [first, second] = stepBars(profile([10, 20]));
    expect(first).toEqual({
      index: 0,
      step: 5,
      durationMs: 10,
      bars: [
        { role: "kernel", from: 0, to: 0.25 },
        { role: "other", from: 0.25, to: 0.5 },
      ],
    });
    expect(second?.bars.at(-1)?.to).toBe(1);
  });

  it("never hides the longest of very many", () => {
    const durations = new Array<number>(1000).fill(1);
    durations[777] = 9;
    const bars = stepBars(profile(durations));
    expect(bars.length).toBeLessThanOrEqual(MOST_STEPS);
    expect(Math.max(...bars.map((one) => one.durationMs))).toBe(9);
    expect(bars.find((one) => one.durationMs === 9)?.step).toBe(782);
  });

  it("draws nothing of nothing", () => {
    expect(stepBars(profile([]))).toEqual([]);
    expect(stepBars(profile([0]))[0]?.bars).toEqual([]);
  });
});

describe("the chosen step", () => {
  const two = profile([10, 20]);

  it("is the one that is named, else none", () => {
    expect(chosenStep(two, "6")).toBe(1);
    for (const word of [null, "", "7", "0", "x"])
      expect(chosenStep(two, word)).toBeNull();
    expect(chosenStep(profile([10]), "5")).toBeNull();
  });

  it("is asked for by its number alone", () => {
    expect(stepNumber("6")).toBe(6);
    for (const word of [null, "", "x", "-1", "1.5", "1e3", "9".repeat(11)])
      expect(stepNumber(word)).toBeNull();
  });

  it("has its own times, as shares of its own length", () => {
    expect(partTimes(two, 1)).toEqual([
      { role: "kernel", ms: 10, share: 0.5 },
      { role: "other", ms: 10, share: 0.5 },
    ]);
    expect(partTimes(two, null)[0]).toEqual({ role: "kernel", ms: 0, share: 0.5 });
    expect(partTimes(profile([0, 0]), 0)[0]?.share).toBe(0);
  });
});

describe("words", () =>
  it("says shares with a digit where they are small", () => {
    expect(percent(0.1234)).toBe("12 %");
    expect(percent(0.0123)).toBe("1.2 %");
    expect(percent(0)).toBe("0 %");
    expect(percent(null)).toBe("–");
  }));
