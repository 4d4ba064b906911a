import { describe, expect, it } from "vitest";
import { originOf, unrealNote } from "./origin";

const REAL = { name: "job", simulated: false, virtualGpu: "" };

describe("what every page says of a run", () => {
  it("is nothing where a real device recorded it", () => {
    expect(unrealNote(REAL)).toBeNull();
    expect(originOf(REAL)).toEqual({ run: "job", unreal: null });
  });

  it("is that its data are simulated", () => {
    const run = { ...REAL, simulated: true };
    expect(unrealNote(run)?.[0]).toBe("Simulated data");
    expect(originOf(run).unreal).toBe("simulated data");
  });

  it("names the virtual device, and what of it is not real", () => {
    const run = { ...REAL, virtualGpu: "virtual H100 80GB" };
    const [title, text] = unrealNote(run) ?? [];
    expect(title).toBe("Virtual GPU");
    expect(text).toContain("virtual H100 80GB: memory is what torch's allocator did");
    expect(text).toContain("times are not real");
    expect(originOf(run).unreal).toBe("virtual GPU");
  });
});
