import { describe, expect, it } from "vitest";
import type { ProfiledTrace, ProfileResponse } from "../../../api/types.gen";
import { nearest } from "../sides";
import { rolePairs } from "./part";

describe("steps", () => {
  const part = (role: string, meanMs: number) => ({ role, meanMs });
  const parts = (...of: unknown[]) => ({ parts: of }) as unknown as ProfileResponse;

  it("have a row per role that either has, other last", () =>
    expect(
      rolePairs(
        parts(part("copies", 3), part("other", 2)),
        parts(part("kernel", 5), part("other", 1)),
      ).map(({ role, a, b }) => [role, a, b]),
    ).toEqual([
      ["kernel", 0, 5],
      ["copies", 3, 0],
      ["other", 2, 1],
    ]));
});

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
