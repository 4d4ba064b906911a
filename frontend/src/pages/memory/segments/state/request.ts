/** What is said of a request: where it goes, or what is in its way. Pure. */

import type { HistoryFacts, SegmentRequest } from "../../../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../../../base/bytes";

export interface RequestWords {
  readonly tone: "ok" | "bad";
  /** One sentence: `Largest free block 0.62 GiB < asked 2.00 GiB`. */
  readonly headline: string;
  /** What else bears on it, most important first. */
  readonly more: readonly string[];
}

export function requestWords(
  request: SegmentRequest,
  facts: Pick<HistoryFacts, "pools" | "streams">,
  byteUnit: ByteUnit,
): RequestWords {
  const bytes = (value: number): string => formatBytes(value, byteUnit);
  const { roundedBytes, requestedBytes, largestFreeBytes, freeBytes } = request;
  const asked = bytes(requestedBytes);
  const arena = arenaWords(request, facts);
  if (request.fits) {
    return {
      tone: "ok",
      headline: `${asked} fits: the largest free block is ${bytes(largestFreeBytes)}`,
      more: [
        `${bytes(freeBytes)} are free ${arena}.`,
        ...(request.isOom
          ? [
              "And yet the request failed: such a block became free only while torch gave up, or the history is not complete.",
            ]
          : []),
      ],
    };
  }
  const more: string[] = [];
  more.push(
    freeBytes === 0
      ? `Nothing is free ${arena}.`
      : freeBytes >= roundedBytes
        ? `${bytes(freeBytes)} are free ${arena}, enough in all, but in pieces.`
        : `${bytes(freeBytes)} are free ${arena}, too little even in one piece.`,
  );
  more.push(growth(request, byteUnit));
  const elsewhere = Math.max(
    request.otherStreamLargestBytes,
    request.otherPoolLargestBytes,
  );
  if (request.otherStreamLargestBytes >= roundedBytes) {
    more.push(
      `Another stream’s free memory has a block of ${bytes(request.otherStreamLargestBytes)}; blocks never change their stream.`,
    );
  } else if (request.otherPoolLargestBytes >= roundedBytes) {
    more.push(
      `Another pool has a free block of ${bytes(request.otherPoolLargestBytes)}; blocks never change their pool.`,
    );
  } else if (elsewhere > largestFreeBytes) {
    more.push(
      `The largest free block of other streams and pools, ${bytes(elsewhere)}, would not do either.`,
    );
  }
  return {
    tone: "bad",
    headline: `Largest free block ${bytes(largestFreeBytes)} < asked ${asked}`,
    more,
  };
}

/** Of the device: what a new segment needs, and whether there was room for one. */
function growth(request: SegmentRequest, byteUnit: ByteUnit): string {
  const bytes = (value: number): string => formatBytes(value, byteUnit);
  const { newSegmentBytes, deviceFreeBytes, releasableBytes } = request;
  const wanted = `A new segment would take ${bytes(newSegmentBytes)}`;
  const released =
    releasableBytes > 0
      ? `; free segments that could be given back hold ${bytes(releasableBytes)}`
      : "; no free segment could be given back";
  if (deviceFreeBytes === null) return `${wanted}${released}.`;
  return `${wanted}, the device had ${bytes(deviceFreeBytes)}${released}.`;
}

function arenaWords(
  { isLarge, pool, stream }: SegmentRequest,
  { pools, streams }: Pick<HistoryFacts, "pools" | "streams">,
): string {
  const words = [
    `for ${isLarge ? "large" : "small"} requests`,
    pools.length > 1 ? `in pool ${pools[pool] ?? "?"}` : "",
    streams.length > 1 ? `on stream ${streams[stream] ?? "?"}` : "",
  ];
  return words.filter((word) => word !== "").join(" ");
}
