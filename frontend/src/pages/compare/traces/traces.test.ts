import { describe, expect, it } from "vitest";
import type { ProfiledTrace } from "../../../api/types.gen";
import { nearest } from "../defaults";

describe("the first A", () => {
  const trace = (id: string, rank: number) => ({ id, rank }) as ProfiledTrace;
  const traces = [trace("a0", 0), trace("a1", 1), trace("b0", 0), trace("b1", 1)];

  it("is the cycle before, of the same rank", () => {
    expect(nearest(traces, "b1")).toBe("a1");
    expect(nearest(traces, "a0")).toBe("b0");
  });

  it("is another rank where the rank has one, else B itself", () => {
    expect(nearest(traces.slice(0, 2), "a0")).toBe("a1");
    expect(nearest(traces.slice(0, 1), "a0")).toBe("a0");
  });
});
