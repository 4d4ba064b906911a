/** Words around the server's verdict. Pure. */

import type {
  OomCause,
  OutOfMemory,
  VerdictEvidence,
  VerdictResponse,
} from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import { formatQuantity } from "../../model/quantity";

export const CAUSES: Readonly<
  Record<OomCause, { readonly name: string; readonly meaning: string }>
> = {
  really_full: {
    name: "Really full",
    meaning: "What the training holds at once is more than the device has.",
  },
  fragmented: {
    name: "Fragmented",
    meaning: "Enough is free where the request belongs, in pieces too small.",
  },
  growth: {
    name: "Growth",
    meaning: "Memory retained across steps filled the GPU.",
  },
  single_giant: {
    name: "Single giant",
    meaning: "One allocation far larger than all before it.",
  },
  imbalance: {
    name: "Imbalance",
    meaning: "This rank holds much more than the others, which have room.",
  },
  non_torch: {
    name: "Not torch’s",
    meaning: "Something outside torch’s allocator filled the device.",
  },
  fitting_block_free: {
    name: "A fitting block was free",
    meaning: "It belongs to another stream or memory pool.",
  },
  private_pools: {
    name: "Free in private pools",
    meaning: "Much was free, but in memory pools of their own that it may not use.",
  },
  pending_free: {
    name: "Pending frees",
    meaning: "Freed memory waited until another stream was done with it.",
  },
  process_limit: {
    name: "Process limit",
    meaning: "The device had room; a limit on this process refused the allocation.",
  },
  unsure: {
    name: "Unsure",
    meaning: "What was recorded fits none of the known causes.",
  },
};

/** The first word of the page. */
export function wordOf(one: OutOfMemory): string {
  if (one.isOutOfMemory) return "Out of memory";
  return one.origin === "signal" ? "Ended by a signal" : "Ended by an exception";
}

/**
 * Whether a history is still to be read that may change the cause and its numbers: what
 * the recorder alone knows is not shown as if it were final.
 */
export function isAnalysing(
  one: Pick<OutOfMemory, "analysed" | "history">,
  verdict: Pick<VerdictResponse, "stillReading">,
): boolean {
  return !one.analysed && one.history !== null && verdict.stillReading;
}

/** Rank, step and what was under way, as far as they are known. */
export function titleParts(one: OutOfMemory): readonly string[] {
  const parts: string[] = [];
  if (one.rank !== null) parts.push(`rank ${formatInteger(one.rank)}`);
  if (one.device !== null) parts.push(`device ${formatInteger(one.device)}`);
  if (one.step !== null) parts.push(`step ${formatInteger(one.step)}`);
  if (one.during !== "") parts.push(one.during);
  if (one.askedAt !== "") parts.push(one.askedAt);
  // A recording's own file is named for the rank, which stands here already.
  if (one.origin === "file" && one.file !== "") parts.push(one.file);
  return parts;
}

/** One of several, in short. */
export function chipWords(one: OutOfMemory): string {
  const rank = one.rank === null ? [] : [`rank ${formatInteger(one.rank)}`];
  const step = one.step === null ? [] : [`step ${formatInteger(one.step)}`];
  const words = [...rank, ...step];
  const where = words.length > 0 ? words : [`device ${one.device ?? "–"}`];
  return `${where.join(" · ")}: ${one.isOutOfMemory ? CAUSES[one.cause].name : wordOf(one)}`;
}

/** Words of the Allocations page that belonged to what it showed before. */
const OF_BEFORE = [
  ...["h0", "h1", "b0", "b1", "r0", "r1", "life", "stack", "mark", "frame", "only"],
  ...["stream", "pool"],
];

/**
 * The words of the URL that open the Allocations page at the error. Without a moment the
 * page finds the device where memory ran out by itself.
 */
export function openWords(one: OutOfMemory): Readonly<Record<string, string | null>> {
  const at = one.moment === null ? null : one.device;
  return {
    ...Object.fromEntries(OF_BEFORE.map((word) => [word, null])),
    history: one.history,
    history_device: at === null ? null : at.toString(),
    moment: one.moment === null ? null : one.moment.toString(),
  };
}

export function evidenceValue(one: VerdictEvidence, byteUnit: ByteUnit): string {
  return formatQuantity(one.value, one.unit, byteUnit);
}

export interface Figure {
  readonly key: string;
  readonly title: string;
  readonly value: number | null;
  readonly note: string;
}

/** The numbers that everybody looks for first. */
export function figures(one: OutOfMemory): readonly Figure[] {
  const pieces = one.numFreeBlocks;
  const inPieces =
    pieces === null
      ? ""
      : `in ${formatInteger(pieces)} ${pieces === 1 ? "block" : "blocks"}`;
  const live = one.activeBytes ?? one.allocatedBytes;
  const all: readonly Figure[] = [
    { key: "asked", title: "Failed allocation", value: one.requestedBytes, note: "" },
    { key: "free", title: "Free on the device", value: one.deviceFreeBytes, note: "" },
    { key: "blocks", title: "Free in its pool", value: one.freeBytes, note: inPieces },
    {
      key: "largest",
      title: "Largest free block",
      value: one.largestFreeBytes,
      note: "",
    },
    { key: "live", title: "Live", value: live, note: "" },
    { key: "reserved", title: "Reserved", value: one.reservedBytes, note: "" },
    { key: "capacity", title: "Device memory", value: one.capacityBytes, note: "" },
  ];
  return all.filter(({ value }) => value !== null);
}
