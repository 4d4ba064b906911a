/** Ranks side by side: order, bars, and a line's bytes in each. Pure. */

import type {
  RankHistoriesResponse,
  RankHistory,
  RankStrip,
} from "../../api/types.gen";
import { sortedRows } from "../../model/shown_rows";
import type { Table } from "../../model/table";

/** Rows in order; ranks that are not read yet go last, whichever way it is. */
export function rankOrder(
  { ranks }: Pick<RankHistoriesResponse, "ranks">,
  by: "rank" | "peak",
): Int32Array {
  const values = ranks.map(({ rank, peakActiveBytes }) =>
    by === "rank" ? rank : (peakActiveBytes ?? NaN),
  );
  return Int32Array.from(sortedRows(ranks.length, values, by === "peak"));
}

/** As the strip of ranks draws them. */
export function rankStrip(answer: RankHistoriesResponse): RankStrip {
  const { ranks } = answer;
  const column = (of: (one: RankHistory) => number | null): Float64Array =>
    Float64Array.from(ranks, (one) => of(one) ?? NaN);
  const none = new Float64Array(ranks.length).fill(NaN);
  return {
    peakSeries: "history/active_peak_bytes",
    capacityKind: "device",
    rank: Int32Array.from(ranks, ({ rank }) => rank),
    host: new Int32Array(ranks.length),
    peakBytes: column((one) => one.peakActiveBytes),
    peakStep: column((one) => one.reference.step),
    capacityBytes: none,
    growthBytesPerStep: none,
    numAllocRetries: none,
    numOoms: column((one) => one.numOoms),
    lastStep: none,
    lost: new Uint8Array(ranks.length),
    hosts: [""],
    medianPeakBytes: answer.medianHistoryPeakBytes,
    outliers: [],
    numUnread: 0,
  };
}

/** The row of the heat table that holds a line's bytes in every rank. */
export function lineOf(
  { lineBytes, ranks }: Pick<RankHistoriesResponse, "lineBytes" | "ranks">,
  line: number,
): Float64Array {
  return lineBytes.subarray(line * ranks.length, (line + 1) * ranks.length);
}

export function ranksTable(
  answer: RankHistoriesResponse,
  rows: ArrayLike<number>,
): Table {
  const { ranks, lines } = answer;
  const column = (of: (one: RankHistory) => number | null): Float64Array =>
    Float64Array.from(rows, (row) => {
      const one = ranks[row];
      return (one === undefined ? null : of(one)) ?? NaN;
    });
  const median = answer.medianHistoryPeakBytes;
  return {
    numRows: rows.length,
    columns: [
      { name: "rank", values: column(({ rank }) => rank) },
      {
        name: "history_peak_active_bytes",
        values: column((one) => one.peakActiveBytes),
      },
      {
        name: "difference_from_median_of_histories_bytes",
        values: column((one) =>
          one.peakActiveBytes === null || median === null
            ? null
            : one.peakActiveBytes - median,
        ),
      },
      { name: "reserved_bytes", values: column((one) => one.reservedBytes) },
      { name: "fragmentation_bytes", values: column((one) => one.fragmentationBytes) },
      {
        name: "top_holder",
        values: Array.from(rows, (row) => ranks[row]?.topLabel ?? ""),
      },
      { name: "top_bytes", values: column((one) => one.topBytes) },
      { name: "num_ooms", values: column((one) => one.numOoms) },
      ...lines.map((line, i) => {
        const bytes = lineOf(answer, i);
        return {
          name: `${line} (bytes)`,
          values: Float64Array.from(rows, (row) => bytes[row] ?? NaN),
        };
      }),
    ],
  };
}
