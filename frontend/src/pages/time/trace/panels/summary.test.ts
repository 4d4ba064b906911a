import { describe, expect, it } from "vitest";
import type { TraceReport } from "../../../../api/types.gen";
import { chosenReport } from "./summary";

function report(more: Partial<TraceReport> = {}): TraceReport {
  return { id: "0-a-1", rank: 0, title: "", facts: [], problem: "", ...more };
}

describe("which trace is summed up", () => {
  const all = [report(), report({ id: "0-a-2" }), report({ id: "1", rank: 1 })];

  it("is the newest of the lowest rank, or the one in the URL", () => {
    expect(chosenReport(all, undefined)?.id).toBe("0-a-2");
    expect(chosenReport(all, "1")?.rank).toBe(1);
    expect(chosenReport(all, "gone")?.id).toBe("0-a-2");
    expect(chosenReport([], undefined)).toBeNull();
  });
});
