/** The Segments page's words in the URL, read and checked. Pure. */

import type { SegmentSort, SizeClass } from "../../../../api/types.gen";
import type { SegmentFill } from "../../../../widgets/segment_map/fills";
import type { SegmentScale } from "../../../../widgets/segment_map/layout";
import type { XRange } from "../../../../widgets/line_chart/types";
import { readMemory, type MemoryWords } from "../../history/moment";
import { oneOf, whole } from "../../history/params";
import { readRange } from "../../../shared/range/params";

/** What of the page is shown. */
export type SegmentsPart = "map" | "time" | "events";

/** Which events the list holds. */
export type EventChoice = "all" | "segments" | "marks";

export interface SegmentsParams extends MemoryWords {
  readonly part: SegmentsPart;
  readonly stream: number | null;
  readonly pool: number | null;
  readonly sizeClass: SizeClass | null;
  readonly sort: SegmentSort;
  readonly scale: SegmentScale;
  readonly fill: SegmentFill;
  /** Bytes somebody wonders about; null: the request that failed, where one did. */
  readonly request: number | null;
  /** The block whose card is open. */
  readonly life: number | null;
  /** Address of the segment whose card is open. */
  readonly segment: number | null;
  /** Events of the scrubber in sight; null: all. */
  readonly range: XRange | null;
  readonly events: EventChoice;
}

export const PARTS: readonly SegmentsPart[] = ["map", "time", "events"];
export const SORTS: readonly SegmentSort[] = [
  "size",
  "address",
  "free",
  "largest_free",
  "age",
];
export const EVENT_CHOICES: readonly EventChoice[] = ["all", "segments", "marks"];
const FILLS: readonly SegmentFill[] = ["category", "state"];
const SIZE_CLASSES: readonly SizeClass[] = ["small", "large"];

function scaleOf(text: string): SegmentScale {
  if (text === "fit") return "fit";
  return /^\d{5,15}$/.test(text) ? Number(text) : "auto";
}

/** Addresses go beyond what ten digits hold. */
function addressOf(text: string): number | null {
  return /^[0-9a-f]{1,13}$/.test(text) ? Number.parseInt(text, 16) : null;
}

export function readSegments(params: ReadonlyMap<string, string>): SegmentsParams {
  const word = (name: string): string => params.get(name) ?? "";
  return {
    ...readMemory(params),
    part: oneOf(PARTS, word("part"), "map"),
    stream: whole(params.get("stream")),
    pool: whole(params.get("pool")),
    sizeClass: SIZE_CLASSES.find((one) => one === word("size_class")) ?? null,
    sort: oneOf(SORTS, word("sort"), "size"),
    scale: scaleOf(word("scale")),
    fill: oneOf(FILLS, word("fill"), "category"),
    request: /^\d{1,18}$/.test(word("request")) ? Number(word("request")) : null,
    life: whole(params.get("life")),
    segment: addressOf(word("segment")),
    range: readRange(params, { low: "s0", high: "s1" }),
    events: oneOf(EVENT_CHOICES, word("events"), "all"),
  };
}

export function rangeWords(
  range: XRange | null,
): Readonly<Record<string, string | null>> {
  return {
    s0: range === null ? null : Math.floor(range.low).toString(),
    s1: range === null ? null : Math.ceil(range.high).toString(),
  };
}

export function segmentWord(address: number | null): string | null {
  return address === null ? null : address.toString(16);
}
