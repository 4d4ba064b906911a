/** A rank strip for tests: peaks given, the rest as recorded without faults. */

import type { RankStrip } from "../../api/types.gen";

export const GIB = 1024 ** 3;

export function stripOf(
  peaksGib: readonly number[],
  changes: Partial<RankStrip> = {},
): RankStrip {
  const n = peaksGib.length;
  const sorted = [...peaksGib].filter((p) => !Number.isNaN(p)).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  return {
    peakSeries: "step/allocated_peak_bytes",
    capacityKind: "device",
    rank: Int32Array.from(peaksGib, (_, i) => i),
    host: new Int32Array(n),
    peakBytes: Float64Array.from(peaksGib, (peak) => peak * GIB),
    peakStep: new Float64Array(n).fill(7),
    capacityBytes: new Float64Array(n).fill(80 * GIB),
    growthBytesPerStep: new Float64Array(n),
    numAllocRetries: new Float64Array(n),
    numOoms: new Float64Array(n),
    lastStep: new Float64Array(n).fill(100),
    lost: new Uint8Array(n),
    hosts: ["node0"],
    medianPeakBytes: median === undefined ? null : median * GIB,
    outliers: [],
    numUnread: 0,
    ...changes,
  };
}
