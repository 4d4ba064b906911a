/** Why free memory cannot be used: one sentence, what bears on it, and figures. Pure. */

import type {
  HistoryFacts,
  SegmentRequest,
  SegmentsResponse,
} from "../../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../../base/bytes";
import type { CallStacks } from "../../../../model/stacks/call_stacks";

export interface Figure {
  readonly name: string;
  readonly bytes: number;
  readonly hint: string;
  /** It is what the request fails on. */
  readonly isCause?: boolean;
}

export interface Why {
  readonly tone: "ok" | "bad" | "plain";
  readonly sentence: string;
  /** What else bears on it, most important first. */
  readonly more: readonly string[];
  readonly figures: readonly Figure[];
  /** The stack that keeps free memory apart, or from being returned; -1: none. */
  readonly culprit: number;
}

export interface WhyInput {
  readonly state: SegmentsResponse;
  readonly facts: Pick<HistoryFacts, "pools" | "streams">;
  readonly stacks: Pick<CallStacks, "stackPlace"> | null;
  readonly byteUnit: ByteUnit;
}

export function whyWords(input: WhyInput): Why {
  const { request } = input.state;
  if (request === null) return withoutRequest(input);
  return request.fits ? fitting(input, request) : refused(input, request);
}

function placeOf({ stacks }: WhyInput, stack: number): string {
  return stacks === null || stack < 0 ? "" : stacks.stackPlace(stack);
}

function returned({ arenas }: SegmentsResponse): number {
  return arenas.releasableBytes.reduce((sum, bytes) => sum + bytes, 0);
}

function deviceFigures(
  state: SegmentsResponse,
  deviceFreeBytes: number | null,
): readonly Figure[] {
  return [
    {
      name: "Returnable",
      bytes: returned(state),
      hint: "What torch.cuda.empty_cache() would return to the device; a failing allocation does this first",
    },
    ...(deviceFreeBytes === null
      ? []
      : [
          {
            name: "Device had",
            bytes: deviceFreeBytes,
            hint: "Free on the device, outside of the allocator",
          },
        ]),
  ];
}

/** Nobody asks: the largest free block against all that is reserved and free. */
function withoutRequest(input: WhyInput): Why {
  const { state, byteUnit } = input;
  const bytes = (value: number): string => formatBytes(value, byteUnit);
  const { freeBytes, reservedBytes, segments, pinners } = state;
  const largest = segments.largestFreeBytes.reduce((a, b) => Math.max(a, b), 0);
  const alone = pinners.aloneBytes[0] ?? 0;
  const culprit = alone > 0 ? (pinners.stack[0] ?? -1) : -1;
  const place = placeOf(input, culprit);
  const back = Math.min(returned(state), freeBytes);
  const pinned =
    place === "" ? "" : ` ${place} alone keeps ${bytes(alone)} from being returned.`;
  const sentence =
    reservedBytes === 0
      ? "Nothing is reserved at this moment."
      : freeBytes === 0
        ? `All of the ${bytes(reservedBytes)} reserved is in use.`
        : `${bytes(freeBytes)} of ${bytes(reservedBytes)} reserved is free, the largest block ${bytes(largest)}; ${back > 0 ? `empty_cache() would return ${bytes(back)}` : "none of it can be returned to the device"}.`;
  return {
    tone: "plain",
    sentence,
    more: pinned === "" ? [] : [pinned.trim()],
    figures: [
      {
        name: "Largest free block",
        bytes: largest,
        hint: "The largest request that fits without new memory from the device",
      },
      { name: "Free", bytes: freeBytes, hint: "Reserved and not in use" },
      ...deviceFigures(state, null),
    ],
    culprit,
  };
}

function requestFigures(
  state: SegmentsResponse,
  request: SegmentRequest,
): readonly Figure[] {
  return [
    {
      name: "Requested",
      bytes: request.requestedBytes,
      hint: "The allocation; its block is rounded up",
    },
    {
      name: "Largest free block",
      bytes: request.largestFreeBytes,
      hint: "Of its pool, stream and size class: no free block leaves these",
      isCause: !request.fits,
    },
    {
      name: "Free for it",
      bytes: request.freeBytes,
      hint: "All free blocks of its pool, stream and size class",
    },
    ...deviceFigures(state, request.deviceFreeBytes),
  ];
}

function fitting({ state, facts, byteUnit }: WhyInput, request: SegmentRequest): Why {
  const bytes = (value: number): string => formatBytes(value, byteUnit);
  return {
    tone: "ok",
    sentence: `${bytes(request.requestedBytes)} fits: the largest free block is ${bytes(request.largestFreeBytes)}.`,
    more: [
      `${bytes(request.freeBytes)} is free ${arenaWords(request, facts)}.`,
      ...(request.isOom
        ? [
            "And yet the request failed: such a block became free only while torch gave up, or the history is not complete.",
          ]
        : []),
    ],
    figures: requestFigures(state, request),
    culprit: -1,
  };
}

function refused(input: WhyInput, request: SegmentRequest): Why {
  const { state, facts, byteUnit } = input;
  const bytes = (value: number): string => formatBytes(value, byteUnit);
  const { roundedBytes, largestFreeBytes, freeBytes, obstacle } = request;
  const asked = bytes(request.requestedBytes);
  const failed = request.isOom
    ? `An allocation of ${asked} failed`
    : `${asked} does not fit`;
  const free = `${bytes(freeBytes)} is free ${arenaWords(request, facts)}`;
  const scattered = freeBytes >= roundedBytes;
  const sentence = scattered
    ? `${failed} although ${free}: the largest free block is ${bytes(largestFreeBytes)}.`
    : freeBytes === 0
      ? `${failed}: nothing is free ${arenaWords(request, facts)}.`
      : `${failed}: only ${free}.`;
  const more: string[] = [];
  if (obstacle !== null) {
    const isOne = obstacle.numLive === 1;
    const place = placeOf(input, obstacle.stack);
    const which = [
      bytes(obstacle.liveBytes),
      place && (isOne ? place : `mostly ${place}`),
    ];
    more.push(
      `Freeing ${isOne ? "one block" : `${formatInteger(obstacle.numLive)} blocks`} (${which.filter(Boolean).join(", ")}) would make room for it.`,
    );
  } else if (
    request.newSegmentBytes >
    (request.deviceFreeBytes ?? NaN) + state.reservedBytes
  ) {
    more.push(
      "It is larger than all that is reserved and what the device had left together.",
    );
  } else if (state.reservedBytes > 0) {
    more.push(
      "No segment that it may use is as long: only memory returned to the device could serve it.",
    );
  }
  const { otherStreamLargestBytes: stream, otherPoolLargestBytes: pool } = request;
  if (stream >= roundedBytes) {
    more.push(
      `Another stream has a free block of ${bytes(stream)}; blocks never change their stream.`,
    );
  } else if (pool >= roundedBytes) {
    more.push(
      `Another pool has a free block of ${bytes(pool)}; blocks never change their pool.`,
    );
  } else if (Math.max(stream, pool) > largestFreeBytes) {
    more.push(
      `The largest free block of other streams and pools, ${bytes(Math.max(stream, pool))}, is too small as well.`,
    );
  }
  more.push(`A new segment would take ${bytes(request.newSegmentBytes)}.`);
  const first = state.pinners.aloneBytes[0] ?? 0;
  return {
    tone: "bad",
    sentence,
    more,
    figures: requestFigures(state, request),
    // Where all is in use, it is not that blocks lie in between.
    culprit: !scattered
      ? -1
      : (obstacle?.stack ?? (first > 0 ? (state.pinners.stack[0] ?? -1) : -1)),
  };
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

/** Who keeps a mostly free segment, in a few words, by its address. */
export function pinWords(
  state: SegmentsResponse,
  stacks: CallStacks | null,
  byteUnit: ByteUnit,
): ReadonlyMap<number, string> {
  const { pins } = state;
  return new Map(
    Array.from(pins.segmentAddress, (address, i) => {
      const num = pins.numLive[i] ?? 0;
      const blocks = num === 1 ? "one block" : `${formatInteger(num)} blocks`;
      const stack = pins.stack[i] ?? -1;
      const at = stacks === null || stack < 0 ? "" : `, ${stacks.stackPlace(stack)}`;
      const live = formatBytes(pins.liveBytes[i] ?? 0, byteUnit);
      return [address, `pinned by ${blocks} of ${live}${at}`];
    }),
  );
}
