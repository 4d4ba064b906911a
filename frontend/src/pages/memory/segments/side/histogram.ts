/** Where the bars of free blocks stand. Pure. */

import type { FreeSizes, SegmentRequest } from "../../../../api/types.gen";
import { formatBytes } from "../../../../base/bytes";
import type { Table } from "../../../../model/table";

const WIDTH_PX = 320;
/** Smaller blocks than the allocator's rounding do not exist. */
const LEAST_POWER = 9;
const FEWEST_POWERS = 14;
const WIDEST_BAR_PX = 22;

export interface HistogramBar {
  readonly fromBytes: number;
  readonly x: number;
  readonly width: number;
  readonly numSplit: number;
  readonly splitBytes: number;
  readonly numWhole: number;
  readonly wholeBytes: number;
}

export interface Histogram {
  readonly bars: readonly HistogramBar[];
  /** Where the request stands; null: there is none. */
  readonly marked: number | null;
  readonly ticks: readonly { readonly x: number; readonly text: string }[];
  /** Of the highest bar. */
  readonly mostBytes: number;
}

/** One bar for each power of two, from 512 bytes to what is free or asked for. */
export function histogramBars(
  sizes: FreeSizes,
  request: Pick<SegmentRequest, "roundedBytes"> | null,
): Histogram {
  const asked = request === null ? 0 : Math.log2(Math.max(request.roundedBytes, 1));
  const largest = Math.log2(Math.max(sizes.fromBytes.at(-1) ?? 1, 1));
  const last = Math.max(
    Math.floor(Math.max(largest, asked)),
    LEAST_POWER + FEWEST_POWERS - 1,
  );
  const least = Math.log2(Math.max(sizes.fromBytes[0] ?? 512, 1));
  const first = Math.min(LEAST_POWER, Math.floor(least));
  const width = Math.min(WIDEST_BAR_PX, WIDTH_PX / (last - first + 1));
  const rows = new Map(
    Array.from(sizes.fromBytes, (from, row) => [Math.log2(from), row]),
  );
  const bars = Array.from({ length: last - first + 1 }, (_, i): HistogramBar => {
    const row = rows.get(first + i) ?? -1;
    return {
      fromBytes: 2 ** (first + i),
      x: i * width,
      width: width - 1,
      numSplit: sizes.numSplit[row] ?? 0,
      splitBytes: sizes.splitBytes[row] ?? 0,
      numWhole: sizes.numWhole[row] ?? 0,
      wholeBytes: sizes.wholeBytes[row] ?? 0,
    };
  });
  const ticks = bars
    .filter(({ fromBytes }) => Math.log2(fromBytes) % 5 === 0)
    .map(({ fromBytes, x }) => ({ x, text: sizeName(fromBytes) }));
  return {
    bars,
    marked: request === null ? null : Math.max(0, (asked - first) * width),
    ticks,
    mostBytes: Math.max(...bars.map((bar) => bar.splitBytes + bar.wholeBytes), 0),
  };
}

/** Powers of two are whole in their unit: `32 KiB`, not `32.0 KiB`. */
function sizeName(bytes: number): string {
  return formatBytes(bytes).replace(/\.0+ /, " ");
}

export function histogramTable(sizes: FreeSizes): Table {
  return {
    numRows: sizes.fromBytes.length,
    columns: [
      { name: "from_bytes", values: sizes.fromBytes },
      { name: "num_split", values: sizes.numSplit },
      { name: "split_bytes", values: sizes.splitBytes },
      { name: "num_whole", values: sizes.numWhole },
      { name: "whole_bytes", values: sizes.wholeBytes },
    ],
  };
}
