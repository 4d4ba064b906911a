import { describe, expect, it } from "vitest";
import type { HostLine, HostTrack } from "../../api/types.gen";
import { dashOf } from "../../widgets/line_chart/palette";
import { hostTable, isFlat, trackColumns, trackLimit, trackLines } from "./host";

function track(lines: readonly (readonly [string, number])[]): HostTrack {
  const column = new Float64Array([1, 2]);
  return {
    key: "cpu",
    title: "CPU",
    unit: "percent",
    limitLabel: "total",
    limit: 100,
    lines: lines.map(([name, rank]): HostLine => ({
      name,
      label: name.toUpperCase(),
      rank,
      host: `node${rank / 8}`,
      x: column,
      y: column,
      yLow: column,
      isFlat: name === "flat",
    })),
  };
}

it("folds a track away where none of its lines changes", () => {
  expect(isFlat(track([["flat", 0]]))).toBe(true);
  expect(
    isFlat(
      track([
        ["flat", 0],
        ["cpu_user_pct", 0],
      ]),
    ),
  ).toBe(false);
});

describe("trackLines", () => {
  it("draws every column of one host", () => {
    const hostTrack = track([
      ["cpu_user_pct", 0],
      ["cpu_system_pct", 0],
    ]);
    const lines = trackLines(hostTrack, "cpu_user_pct");
    expect(lines.map((line) => line.label)).toEqual(["CPU_USER_PCT", "CPU_SYSTEM_PCT"]);
    expect(lines.map((line) => line.colour)).toEqual([0, 1]);
  });

  it("draws one column of many hosts and names the hosts", () => {
    const many = track([
      ["a", 0],
      ["a", 8],
      ["b", 0],
      ["b", 8],
    ]);
    expect(trackColumns(many)).toEqual(["a", "b"]);
    const lines = trackLines(many, "b");
    expect(lines.map((line) => line.label)).toEqual(["node0", "node1"]);
    expect(new Set(lines.map((line) => line.id)).size).toBe(2);
  });

  it("tells lines that share a colour apart by the dash", () => {
    const many = Array.from({ length: 24 }, (_, i) => ["a", i * 8] as const);
    const lines = trackLines(track(many), "a");
    const looks = lines.map(
      (line) => `${Number(line.colour) % 8} ${dashOf(line.colour).join()}`,
    );
    expect(new Set(looks).size).toBe(24);
  });
});

describe("hostTable", () =>
  it("holds every point of every line once, with its low", () => {
    const cpu = track([
      ["a", 0],
      ["b", 0],
    ]);
    const low = new Float64Array([0.5, 2]);
    const [first, second] = cpu.lines;
    if (first === undefined || second === undefined) throw new Error("two lines");
    const lines = [first, { ...second, x: new Float64Array([7, 9]), yLow: low }];
    const table = hostTable({ tracks: [{ ...cpu, lines }], x: "relative" });
    const column = (name: string) =>
      table.columns.find((candidate) => candidate.name === name)?.values;
    expect(table.numRows).toBe(4);
    expect(column("relative_ms")).toEqual([1, 2, 7, 9]);
    expect(column("column")).toEqual(["a", "a", "b", "b"]);
    expect(column("high")).toEqual([1, 2, 1, 2]);
    expect(column("low")).toEqual([1, 2, 0.5, 2]);
  }));

describe("trackLimit", () =>
  it("draws a limit in units of the track, but no line at 100 %", () => {
    expect(trackLimit(track([]))).toBeNull();
    const memory: HostTrack = { ...track([]), key: "memory", unit: "bytes", limit: 64 };
    expect(trackLimit(memory)).toEqual({ value: 64, label: "total" });
    expect(trackLimit({ ...memory, key: "swap", limit: 0 })).toBeNull();
  }));
