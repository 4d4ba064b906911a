/** Ranks of a profiling cycle beside each other: bars and columns. Pure. */

import type { DistributedResponse } from "../../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import type { Sort } from "../../../model/shown_rows";
import {
  absentCell,
  barOf,
  countCell,
  durationCell,
  longestOf,
  numberColumn,
} from "../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../widgets/row_table/row_table";
import { groupColumn, kindColumn } from "./group_columns";
import { PART_WORDS, RANK_PARTS, rankPartColour, type RankPart } from "./parts";

const NOT_COMPARED =
  "Not known: not all ranks that take part in these collectives have a trace here";

function rankCell(rank: number): RowCell {
  if (rank >= 0) return { text: String(rank) };
  return absentCell("Neither the trace nor its file’s name says the rank");
}

/** Milliseconds of a part, by rank. */
export function partMs(data: DistributedResponse, part: RankPart): Float64Array {
  switch (part) {
    case "computation":
      return data.computationMs;
    case "overlap":
      return data.overlapMs;
    case "communication":
      return data.communicationMs;
    case "other":
      return data.otherMs;
  }
}

/** Ranks as rows: the parts of each one's step. */
export function rankColumns(
  data: DistributedResponse,
  theme: Theme,
): readonly RowColumn[] {
  const longest = longestOf(data.stepMs);
  const noStep = "This rank has no such step";
  const duration = (
    key: string,
    title: string,
    width: string,
    values: Float64Array,
    hint: string,
    absent = noStep,
    bar = "",
  ): RowColumn => {
    const cell = (ms: number, row: number): RowCell => {
      if (Number.isNaN(ms)) {
        return absentCell(Number.isNaN(data.stepMs[row] ?? NaN) ? noStep : absent);
      }
      const time = durationCell(ms);
      return bar === "" ? time : { ...time, bar: barOf(ms, longest, bar) };
    };
    return numberColumn(key, title, width, values, cell, hint);
  };
  const ofRank = "As the trace says it, or its file’s name";
  return [
    {
      ...numberColumn("rank", "Rank", "64px", data.rank, rankCell, ofRank),
      ascends: true,
    },
    duration(
      "step_ms",
      "Step",
      "88px",
      data.stepMs,
      "Time of the step, to the end of the device work it launched; of several steps the mean",
    ),
    ...RANK_PARTS.map((part) =>
      duration(
        `${part}_ms`,
        PART_WORDS[part][0],
        "minmax(104px, 1fr)",
        partMs(data, part),
        PART_WORDS[part][1],
        noStep,
        rankPartColour(theme, part),
      ),
    ),
    duration(
      "transfer_ms",
      "Data moved",
      "96px",
      data.transferMs,
      "Of the collectives of the step chosen, else of all of the cycle: the shortest duration any rank measured of each. Collectives at the end of the profiled window, which not all traces show, are left out.",
      NOT_COMPARED,
    ),
    duration(
      "waiting_ms",
      "Waited",
      "88px",
      data.waitingMs,
      "Of the same collectives: this rank’s durations − data moved. It waited for the last rank; a link that is slow for this rank alone counts as well.",
      NOT_COMPARED,
    ),
  ];
}

export const USUAL_RANKS: Sort = { key: "rank", descending: false };
export const USUAL_COLLECTIVES: Sort = { key: "total", descending: true };
export function collectiveColumns(
  { collectives: own }: DistributedResponse,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const bytes = (value: number, after: string): RowCell =>
    Number.isNaN(value)
      ? absentCell("The trace does not say it")
      : { text: `${formatBytes(value, byteUnit)}${after}`, title: `${value}${after}` };
  /** Of the calls that all their ranks show; where these are not all, how many. */
  const compared =
    (cell: (value: number) => RowCell) =>
    (value: number, row: number): RowCell => {
      if (Number.isNaN(value)) return absentCell(NOT_COMPARED);
      const [num, all] = [own.numCompared[row] ?? 0, own.numCalls[row] ?? 0];
      if (num >= all) return cell(value);
      return { ...cell(value), note: `${num} of ${all} calls` };
    };
  return [
    numberColumn("rank", "Rank", "56px", own.rank, rankCell),
    kindColumn(own.kind),
    groupColumn(own.group, own.groupSize),
    numberColumn(
      "calls",
      "Calls",
      "64px",
      own.numCalls,
      countCell,
      "Collectives of this kind and group, over the whole cycle",
    ),
    numberColumn(
      "bytes",
      "Bytes",
      "88px",
      own.numBytes,
      (value) => bytes(value, ""),
      "Elements × bytes of an element, over all calls: of what goes into all_reduce, reduce, reduce_scatter, broadcast, scatter and send; of others what comes out",
    ),
    numberColumn(
      "total",
      "Total",
      "84px",
      own.totalMs,
      durationCell,
      "Sum of the calls’ durations, waiting included; those at the same time count each",
    ),
    numberColumn(
      "mean",
      "Mean",
      "80px",
      own.totalMs.map((ms, row) => ms / (own.numCalls[row] ?? 1)),
      durationCell,
      "Total ÷ calls: the latency of one, waiting included",
    ),
    numberColumn(
      "transfer",
      "Data moved",
      "96px",
      own.transferMs,
      compared(durationCell),
      "Without waiting for other ranks: the shortest duration any rank measured of each call",
    ),
    numberColumn(
      "bus",
      "Bus bandwidth",
      "112px",
      own.busBytesPerSecond,
      (value, row) =>
        Number.isNaN(own.transferMs[row] ?? NaN)
          ? absentCell(NOT_COMPARED)
          : bytes(value, "/s"),
      "nccl-tests’ definition over data moved: bytes × 2(n−1)/n of all_reduce, (n−1)/n of all_gather, reduce_scatter and all_to_all, else 1, ÷ time. To be compared with the link’s speed.",
    ),
    numberColumn(
      "last",
      "Last in",
      "64px",
      own.numLast,
      compared(countCell),
      "Calls in which the other ranks waited for this one: it measured the shortest duration",
    ),
  ];
}
