/** What stands left of a segment's blocks, and the room that takes. Pure. */

import type { HistoryFacts, SegmentsResponse } from "../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../base/bytes";
import { addressText, segmentArena, segmentStream } from "./words";

/** Of a segment on the only stream, `1.95 GiB 0x7f4c02000000` above `full · large`. */
const LEAST_PX = 220;
/** What is longer ends in an ellipsis; pointing at it says all. */
const MOST_PX = 320;
/** Of the small font of heads; addresses are in letters of one width. */
const LETTER_PX = 5.5;
const CODE_LETTER_PX = 6.7;
/** The size has a column of its own. */
const SIZE_PX = 62;
const PADDING_PX = 24;
/** `1.00 GiB free · `: room for it is kept, so that the map stands still in time. */
const FREE_LETTERS = 17;

export interface HeadWords {
  readonly size: string;
  readonly address: string;
  /** "" where all segments are on one stream. */
  readonly stream: string;
  /** `1.00 GiB free · large`. */
  readonly below: string;
}

type Facts = Pick<HistoryFacts, "pools" | "streams">;

export function headWords(
  answer: Pick<SegmentsResponse, "segments">,
  row: number,
  facts: Facts,
  byteUnit: ByteUnit,
): HeadWords {
  const { segments } = answer;
  const free = segments.freeBytes[row] ?? 0;
  const fill = free === 0 ? "full" : `${formatBytes(free, byteUnit)} free`;
  return {
    size: formatBytes(segments.totalBytes[row] ?? 0, byteUnit),
    address: addressText(segments.address[row] ?? 0),
    stream: segmentStream(answer, row, facts),
    below: `${fill} · ${segmentArena(answer, row, facts)}`,
  };
}

/** CSS px that the heads of all segments need, the same for all. */
export function headWidth(
  answer: Pick<SegmentsResponse, "segments">,
  facts: Facts,
  byteUnit: ByteUnit,
): number {
  let most = LEAST_PX;
  for (let row = 0; row < answer.segments.address.length; row += 1) {
    const { address, stream, below } = headWords(answer, row, facts, byteUnit);
    const above =
      SIZE_PX + address.length * CODE_LETTER_PX + (stream.length + 3) * LETTER_PX;
    const arena = FREE_LETTERS + segmentArena(answer, row, facts).length;
    const letters = Math.max(below.length, arena);
    const needed = PADDING_PX + Math.max(above, letters * LETTER_PX);
    most = Math.max(most, Math.ceil(needed));
  }
  return Math.min(most, MOST_PX);
}
