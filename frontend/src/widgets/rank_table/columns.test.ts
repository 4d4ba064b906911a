import { describe, expect, it } from "vitest";
import type { RankStrip } from "../../api/types.gen";
import { toCsv } from "../export/source";
import { tableOf } from "../row_table/columns";
import { rankColumns } from "./columns";

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

describe("the columns of the ranks", () => {
  const columns = rankColumns(STRIP, new Set([3]), () => undefined, "auto");
  const cells = (key: string): readonly string[] => {
    const column = columns.find((one) => one.key === key);
    return [0, 1, 2].map((row) => column?.cell(row).text ?? "");
  };

  it("keep absence as absence: no share without both numbers", () => {
    expect(cells("share")).toEqual(["50.0 %", "–", "–"]);
    expect(cells("allocator retries")).toEqual(["0", "–", "3"]);
    expect(cells("host")).toEqual(["<b>a</b>", "b", ""]);
    expect(cells("out of memory")).toEqual(["0", "0", "✖ 1"]);
    expect(cells("lost")).toEqual(["", "", "⚠ lost"]);
  });

  it("say in a file what they show, in the order shown", () =>
    expect(toCsv(tableOf(columns, [2, 1])).split("\r\n")).toEqual([
      "rank,host,peak (bytes),at step,capacity (bytes),growth (bytes per step),allocator retries,out of memory,last step,lost",
      "9,,90,9,0,2,3,1,9,lost",
      "3,b,,,100,0,,0,10,",
      "",
    ]));
});
