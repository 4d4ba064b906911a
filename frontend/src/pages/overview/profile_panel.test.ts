import { describe, expect, it } from "vitest";
import type { ProfileResponse } from "../../api/types.gen";
import { chosenStep, partTimes, percent } from "./profile_panel";

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

describe("the chosen step", () => {
  const two = profile([10, 20]);

  it("is the one that is named, else none", () => {
    expect(chosenStep(two, 6)).toBe(1);
    for (const named of [null, 7, 0]) expect(chosenStep(two, named)).toBeNull();
    expect(chosenStep(profile([10]), 5)).toBeNull();
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
  }));
