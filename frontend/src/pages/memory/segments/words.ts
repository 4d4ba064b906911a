/** What the Segments page calls things. Pure. */

import type { AllocatorAction, SegmentSort } from "../../../api/types.gen";
import type { EventChoice, SegmentsPart } from "./state/params";

export const PART_WORDS: Readonly<Record<SegmentsPart, readonly [string, string]>> = {
  map: ["Map", "Segments and blocks at one moment"],
  time: [
    "Over time",
    "Segments from the event that brought them to the one that took them",
  ],
  events: ["Events", "What the allocator did, one after another"],
};

export const SORT_WORDS: Readonly<Record<SegmentSort, string>> = {
  size: "largest first",
  address: "address",
  free: "most free first",
  largest_free: "largest free block first",
  age: "oldest first",
};

export const EVENT_WORDS: Readonly<Record<EventChoice, readonly [string, string]>> = {
  all: ["All", "Every event"],
  segments: ["Segments", "Memory that came from the device or went back to it"],
  marks: ["Errors and marks", "Out-of-memory errors, snapshots and annotations"],
};

/** Which actions each choice of events holds; null: all. */
export const EVENT_ACTIONS: Readonly<
  Record<EventChoice, readonly AllocatorAction[] | null>
> = {
  all: null,
  segments: ["segment_alloc", "segment_free", "segment_map", "segment_unmap"],
  marks: ["oom", "snapshot", "annotate"],
};

const ACTION_WORDS: Readonly<Record<AllocatorAction, string>> = {
  alloc: "allocated",
  free_requested: "free asked for",
  free_completed: "freed",
  free: "freed",
  segment_alloc: "segment reserved",
  segment_free: "segment given back",
  segment_map: "segment mapped",
  segment_unmap: "segment unmapped",
  snapshot: "snapshot",
  oom: "out of memory",
  annotate: "annotation",
  unknown: "unknown event",
};

export function actionWords(action: AllocatorAction): string {
  return ACTION_WORDS[action];
}
