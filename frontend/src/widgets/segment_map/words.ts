/** What the map says of segments and blocks. Pure. */

import type { HistoryFacts, SegmentsResponse } from "../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../base/bytes";
import type { CallStacks } from "../../model/stacks/call_stacks";
import type { Table } from "../../model/table";
import { momentText } from "../block_stack/axis";
import { STATE } from "./fills";
import { rowOfBlock } from "./layout";

/** Addresses stay below 2^53: they are exact as numbers. */
export function addressText(address: number): string {
  return `0x${address.toString(16)}`;
}

export const STATE_WORDS: Readonly<Record<number, string>> = {
  [STATE.free]: "free",
  [STATE.allocated]: "allocated",
  [STATE.pending]: "pending free",
};

/** What kind of segment it is: `large · expandable · pool (0, 1)`. */
export function segmentArena(
  { segments }: Pick<SegmentsResponse, "segments">,
  row: number,
  { pools }: Pick<HistoryFacts, "pools">,
): string {
  const pool = segments.pool[row] ?? -1;
  return [
    segments.isLarge[row] === 1 ? "large" : "small",
    segments.isExpandable[row] === 1 ? "expandable" : "",
    pool > 0 ? `pool ${pools[pool] ?? ""}` : "",
  ]
    .filter((word) => word !== "")
    .join(" · ");
}

/** `stream 0x55d2c0a1b2c0`; "" where there is one for all. */
export function segmentStream(
  { segments }: Pick<SegmentsResponse, "segments">,
  row: number,
  { streams }: Pick<HistoryFacts, "streams">,
): string {
  const stream = segments.stream[row] ?? -1;
  return streams.length > 1 ? `stream ${streams[stream] ?? "?"}` : "";
}

/** Both in one line. */
export function segmentKind(
  answer: Pick<SegmentsResponse, "segments">,
  row: number,
  facts: Pick<HistoryFacts, "pools" | "streams">,
): string {
  return [segmentArena(answer, row, facts), segmentStream(answer, row, facts)]
    .filter((words) => words !== "")
    .join(" · ");
}

export function openedText(opened: number): string {
  return opened < 0 ? "before the first event" : momentText(opened);
}

/** What is read out of a block: `allocated, 24.0 MiB, forward model.py:3, at 0x…`. */
export function blockWords(
  answer: SegmentsResponse,
  block: number,
  stacks: CallStacks | null,
  byteUnit: ByteUnit,
): string {
  const { blocks, segments } = answer;
  const row = rowOfBlock(answer, block);
  const state = STATE_WORDS[blocks.state[block] ?? 0] ?? "";
  const stack = blocks.stack[block] ?? -1;
  const address = (segments.address[row] ?? 0) + (blocks.offset[block] ?? 0);
  const place = stacks !== null && stack >= 0 ? stacks.stackLabel(stack) : "";
  const size = formatBytes(blocks.size[block] ?? NaN, byteUnit);
  const segment = `segment ${formatInteger(row + 1)} of ${formatInteger(segments.address.length)}`;
  return [state, size, place, `at ${addressText(address)}`, segment]
    .filter((word) => word !== "")
    .join(", ");
}

/** Left of a segment's blocks; what is longer ends in an ellipsis. */
export const HEAD_PX = 236;

export interface HeadWords {
  readonly size: string;
  /** "" of many segments in one line. */
  readonly address: string;
  /** "" where all segments are on one stream. */
  readonly stream: string;
  /** `1.00 GiB free · large`. */
  readonly below: string;
}

export function headWords(
  answer: Pick<SegmentsResponse, "segments">,
  row: number,
  folded: number,
  facts: Pick<HistoryFacts, "pools" | "streams">,
  byteUnit: ByteUnit,
): HeadWords {
  const { segments } = answer;
  const size = formatBytes(segments.totalBytes[row] ?? 0, byteUnit);
  const free = segments.freeBytes[row] ?? 0;
  const fill = free === 0 ? "full" : `${formatBytes(free, byteUnit)} free`;
  return {
    size: folded > 1 ? `${formatInteger(folded)} × ${size}` : size,
    address: folded > 1 ? "" : addressText(segments.address[row] ?? 0),
    stream: segmentStream(answer, row, facts),
    below: `${fill} · ${segmentArena(answer, row, facts)}`,
  };
}

/** Every segment as a row; `pinned`: who keeps it, by its address. */
export function segmentTable(
  answer: SegmentsResponse,
  facts: Pick<HistoryFacts, "pools" | "streams">,
  stacks: CallStacks | null,
  pinned: ReadonlyMap<number, string>,
): Table {
  const { segments } = answer;
  const words = (of: (row: number) => string): readonly string[] =>
    Array.from(segments.address, (_, row) => of(row));
  return {
    numRows: segments.address.length,
    columns: [
      {
        name: "address",
        values: words((row) => addressText(segments.address[row] ?? 0)),
      },
      { name: "total_bytes", values: segments.totalBytes },
      { name: "allocated_bytes", values: segments.allocatedBytes },
      { name: "pending_bytes", values: segments.pendingBytes },
      { name: "free_bytes", values: segments.freeBytes },
      { name: "largest_free_bytes", values: segments.largestFreeBytes },
      { name: "requested_bytes", values: segments.requestedBytes },
      { name: "num_active", values: segments.numActive },
      {
        name: "size_class",
        values: words((row) => (segments.isLarge[row] === 1 ? "large" : "small")),
      },
      { name: "is_expandable", values: segments.isExpandable },
      {
        name: "pool",
        values: words((row) => facts.pools[segments.pool[row] ?? -1] ?? ""),
      },
      {
        name: "stream",
        values: words((row) => facts.streams[segments.stream[row] ?? -1] ?? ""),
      },
      { name: "opened_event", values: segments.opened },
      {
        name: "opened_by",
        values: words((row) => {
          const stack = segments.stack[row] ?? -1;
          return stack < 0 || stacks === null ? "" : stacks.stackLabel(stack);
        }),
      },
      {
        name: "pinned",
        values: words((row) => pinned.get(segments.address[row] ?? -1) ?? ""),
      },
    ],
  };
}
