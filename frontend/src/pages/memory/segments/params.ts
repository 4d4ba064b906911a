import type { SegmentsResponse } from "../../../api/types.gen";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import type { SegmentScale } from "./map/layout";
import {
  oneOf,
  switched,
  whole,
  type PageState,
  type Word,
} from "../../shared/page_state";
import { xRange } from "../../shared/range/params";
import type { ViewProps } from "../../shared/view_props";
import type { OpenHistory } from "../history/use_history";

const SCALE: Word<SegmentScale> = {
  read: (params) => {
    const scale = params.get("scale") ?? "";
    if (scale === "fit") return "fit";
    return /^\d{5,15}$/.test(scale) ? Number(scale) : "auto";
  },
  write: (scale) => ({ scale: scale === "auto" ? null : String(scale) }),
};

/** Addresses have more than twelve digits. */
const ADDRESS: Word<number | null> = {
  read: (params) => {
    const address = params.get("segment") ?? "";
    return /^[0-9a-f]{1,13}$/.test(address) ? Number.parseInt(address, 16) : null;
  },
  write: (address) => ({ segment: address === null ? null : address.toString(16) }),
};

const PARTS = {
  map: ["Map", "Segments and blocks at one moment"],
  time: ["Over time", "Segments from their reservation to their release"],
  events: ["Events", "What the allocator did, one after another"],
} as const;

const FILLS = {
  category: ["Category", "Live blocks in the colours of all pages"],
  state: ["State", "Allocated, pending free and free alone"],
} as const;

const EVENTS = {
  all: ["All", "Every event"],
  segments: ["Segments", "Memory that came from the device or was returned to it"],
  marks: ["Errors and marks", "Out-of-memory errors, snapshots and annotations"],
} as const;

export const SEGMENTS = {
  part: switched("part", PARTS, "map"),
  stream: whole("stream"),
  pool: whole("pool"),
  sizeClass: oneOf("size_class", ["small", "large"], null),
  sort: oneOf("sort", ["size", "address", "free", "largest_free", "age"], "size"),
  scale: SCALE,
  fill: switched("fill", FILLS, "category"),
  /** Bytes of a hypothetical request; null: the one that failed, if any. */
  request: whole("request"),
  life: whole("life"),
  segment: ADDRESS,
  /** Visible events of the scrubber; null: all. */
  range: xRange({ low: "s0", high: "s1" }),
  events: switched("events", EVENTS, "all"),
} as const;

export type SegmentsState = PageState<typeof SEGMENTS>;
type SetSegments = (changes: Partial<SegmentsState>, how?: "replace" | "push") => void;

export interface OpenSegments {
  readonly view: ViewProps;
  readonly params: SegmentsState;
  readonly setParams: SetSegments;
  readonly open: OpenHistory;
  readonly moment: number;
  readonly go: (moment: number) => void;
  /** Of the moment, or of the previous one until it arrives. */
  readonly state: SegmentsResponse;
  readonly stacks: CallStacks | null;
  /** Source lines that a finding names. */
  readonly culprits: ReadonlySet<string>;
  readonly label: string;
}
