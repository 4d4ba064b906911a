import { describe, expect, it } from "vitest";
import { headingLines, headingWidth, inTwoLines } from "./headings";

describe("headings", () => {
  it("have their last word below the others", () => {
    expect(inTwoLines("Δ Unsharded params")).toBe("Δ Unsharded\nparams");
    expect(inTwoLines("Optimizer")).toBe("Optimizer");
  });

  it("need the room of their longest line, and of what stands beside it", () => {
    expect(headingLines("Backward\nhost self")).toEqual(["Backward", "host self"]);
    const oneLine = headingWidth("Unsharded params", false);
    const two = headingWidth("Unsharded\nparams", false);
    expect(two).toBeLessThan(oneLine - 40);
    expect(headingWidth("Unsharded\nparams", true)).toBeGreaterThan(two);
  });
});
