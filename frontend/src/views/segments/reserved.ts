/** What reserved memory is made of at a moment. Pure. */

import type { SegmentsResponse } from "../../api/types.gen";

export interface ReservedPart {
  readonly key: "requested" | "rounding" | "split" | "whole";
  readonly label: string;
  readonly hint: string;
  readonly bytes: number;
}

/** Parts that add up to `reservedBytes`; those of nothing are left out. */
export function reservedParts(state: SegmentsResponse): readonly ReservedPart[] {
  const active = state.allocatedBytes + state.pendingBytes;
  const requested = Math.min(state.requestedBytes, active);
  const { freeBytes, numActive } = state.segments;
  let whole = 0;
  numActive.forEach((num, row) => {
    if (num === 0) whole += freeBytes[row] ?? 0;
  });
  const parts: ReservedPart[] = [
    {
      key: "requested",
      label: "live, as asked for",
      hint: "What the program asked for and still holds, or waits to be freed",
      bytes: requested,
    },
    {
      key: "rounding",
      label: "rounding",
      hint: "Blocks are larger than what was asked for: multiples of 512 bytes, or what was not worth splitting",
      bytes: active - requested,
    },
    {
      key: "split",
      label: "free, beside live blocks",
      hint: "inactive_split: fragmentation; it can serve requests that fit, but not go back to the device",
      bytes: Math.max(0, state.freeBytes - whole),
    },
    {
      key: "whole",
      label: "free segments",
      hint: "Wholly free: torch.cuda.empty_cache() gives these back",
      bytes: whole,
    },
  ];
  return parts.filter(({ bytes }) => bytes > 0);
}
