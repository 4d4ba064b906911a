import { describe, expect, it } from "vitest";
import type { HostLine, HostTrack } from "../../api/types.gen";
import { MAX_LINES, trackLimit, trackLines } from "./tracks";

function track(lines: readonly (readonly [string, number])[]): HostTrack {
  const column = new Float64Array([1, 2]);
  return {
    key: "cpu",
    unit: "percent",
    limit: 100,
    lines: lines.map(([name, rank]): HostLine => ({
      name,
      rank,
      x: column,
      y: column,
      yLow: column,
    })),
  };
}

describe("trackLines", () => {
  it("names the rank only where several speak", () => {
    const one = trackLines(track([["cpu_user_pct", 0]])).lines;
    expect(one.map((line) => line.label)).toEqual(["CPU user"]);
    const two = trackLines(
      track([
        ["cpu_user_pct", 0],
        ["cpu_user_pct", 8],
      ]),
    ).lines;
    expect(two.map((line) => line.label)).toEqual([
      "CPU user, rank 0",
      "CPU user, rank 8",
    ]);
  });

  it("keeps one column one colour over hosts, and tells hosts apart by the dash", () => {
    const { lines } = trackLines(
      track([
        ["a", 0],
        ["b", 0],
        ["a", 8],
        ["b", 8],
      ]),
    );
    expect(lines.map((line) => line.colour)).toEqual([0, 1, 0, 1]);
    expect(lines.map((line) => line.dash)).toEqual([
      "solid",
      "solid",
      "dashed",
      "dashed",
    ]);
    expect(new Set(lines.map((line) => line.id)).size).toBe(4);
  });

  it("says how many lines it leaves out", () => {
    const many = Array.from({ length: 500 }, (_, i) => ["cpu_total_pct", i] as const);
    const { lines, numLeftOut } = trackLines(track(many));
    expect(lines).toHaveLength(MAX_LINES);
    expect(lines.length + numLeftOut).toBe(500);
  });
});

describe("trackLimit", () => {
  it("draws a limit in units of the track, but no line at 100 %", () => {
    expect(trackLimit(track([]))).toBeNull();
    const memory: HostTrack = { ...track([]), key: "memory", unit: "bytes", limit: 64 };
    expect(trackLimit(memory)).toEqual({ value: 64, label: "total" });
  });
});
