import { describe, expect, it } from "vitest";
import type { RankStrip } from "../../api/types.gen";
import { compareAbsentLow, rankRows, rowsTable } from "./rows";

const STRIP: RankStrip = {
  peakSeries: "step/allocated_peak_bytes",
  capacityKind: "device",
  rank: Int32Array.of(0, 3, 9),
  host: Int32Array.of(0, 1, 7),
  peakBytes: Float64Array.of(50, NaN, 90),
  peakStep: Float64Array.of(4, NaN, 9),
  capacityBytes: Float64Array.of(100, 100, 0),
  growthBytesPerStep: Float64Array.of(-1, 0, 2),
  numAllocRetries: Float64Array.of(0, NaN, 3),
  numOoms: Float64Array.of(0, 0, 1),
  lastStep: Float64Array.of(10, 10, 9),
  lost: Uint8Array.of(0, 0, 1),
  hosts: ["<b>a</b>", "b"],
  medianPeakBytes: 70,
  outliers: [9],
  numUnread: 0,
};

describe("rankRows", () => {
  it("keeps absence as absence: no share without both numbers", () => {
    const rows = rankRows(STRIP, null, [3]);
    expect(rows.map((row) => row.share)).toEqual([0.5, NaN, NaN]);
    expect(rows.map((row) => row.pinned)).toEqual([false, true, false]);
    expect(rows[2]).toMatchObject({ host: "", lost: true, numOoms: 1 });
  });

  it("narrows to the ranks asked for", () =>
    expect(rankRows(STRIP, new Set([9, 0]), []).map((row) => row.rank)).toEqual([
      0, 9,
    ]));
});

describe("compareAbsentLow", () =>
  it("orders numbers and puts absence below them", () => {
    expect([3, NaN, -5, 7].sort(compareAbsentLow)).toEqual([NaN, -5, 3, 7]);
    expect(compareAbsentLow(NaN, NaN)).toBe(0);
  }));

describe("rowsTable", () =>
  it("has as many values in every column as rows", () => {
    const table = rowsTable(rankRows(STRIP, null, []));
    for (const column of table.columns) expect(column.values.length).toBe(3);
  }));
