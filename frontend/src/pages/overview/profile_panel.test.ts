import { describe, expect, it } from "vitest";
import { chosenStep } from "./profile_panel";

const profile = (...steps: number[]) => ({ step: Int32Array.from(steps) });

describe("the chosen step", () => {
  const two = profile(5, 6);

  it("is the one that is named, else none", () => {
    expect(chosenStep(two, 6)).toBe(6);
    for (const named of [null, 7, 0]) expect(chosenStep(two, named)).toBeNull();
    expect(chosenStep(profile(5), 5)).toBeNull();
  });
});
