import type {
  AllocationColour,
  AllocationOrder,
  HistoryDevice,
} from "../../../api/types.gen";
import { FRAME_CHOICES } from "../../../model/stacks/call_stacks";
import { oneOf, text, whole, type PageState, type Word } from "../../shared/page_state";
import { xRange } from "../../shared/range/params";
import { MEMORY, VIEW_X, VIEW_Y } from "../history/moment";

export const ORDERS: Readonly<Record<AllocationOrder, readonly [string, string]>> = {
  category: ["Category", "Categories stacked, each in order of allocation"],
  group: ["Colour", "Blocks of one colour together"],
  allocation: ["Allocation", "All in order of allocation, as memory_viz stacks them"],
};

export const COLOURS: Readonly<Record<AllocationColour, string>> = {
  category: "category",
  module: "module",
  stack: "line of code",
  age: "age",
  stream: "stream",
  pool: "memory pool",
};

export const FLAMES = {
  tree: ["Flame", "From the outermost caller down to the line that allocated"],
  sandwich: ["Sandwich", "What calls one frame, and what it calls"],
  difference: ["Difference", "What grew and what shrank since the marked moment"],
} as const;

/** Bytes of the flamegraph: at the slider's moment, or of its range. */
export const FLAME_BYTES = {
  moment: ["At the moment", "Live at the moment of the slider"],
  allocated: ["Allocated in the range", "All that was allocated in the range"],
  live: ["Still live", "Allocated in the range, and live at its end"],
} as const;

export function keysOf<K extends string>(labels: Readonly<Record<K, unknown>>): K[] {
  return Object.keys(labels) as K[];
}

/** Frames from the outermost to the box that fills a flamegraph; empty: all. */
function framePath(name: string): Word<readonly number[]> {
  return {
    read: (params) => {
      const path = params.get(name) ?? "";
      return /^-?\d{1,9}(,-?\d{1,9})*$/.test(path) ? path.split(",").map(Number) : [];
    },
    write: (path) => ({ [name]: path.length === 0 ? null : path.join(",") }),
  };
}

export const BLOCKS = {
  ...MEMORY,
  stream: whole("stream"),
  pool: whole("pool"),
  order: oneOf("order", keysOf(ORDERS), null),
  colour: oneOf("colour", keysOf(COLOURS), "category"),
  axis: oneOf("axis", ["event", "time"], "event"),
  /** Key of the only coloured group; "": all. */
  only: text("only"),
  life: whole("life"),
  stack: whole("stack"),
  mark: whole("mark", -1),
  flameBytes: oneOf("flame_bytes", keysOf(FLAME_BYTES), "moment"),
  frames: oneOf("frames", FRAME_CHOICES, "python"),
  flame: oneOf("flame", keysOf(FLAMES), "tree"),
  frame: whole("frame"),
  flameZoom: framePath("flame_zoom"),
  callersZoom: framePath("callers_zoom"),
  calleesZoom: framePath("callees_zoom"),
  /** The visible part, in axis units and bytes; null: everything. */
  x: xRange(VIEW_X),
  y: xRange(VIEW_Y),
  /** Chosen events: the second bound is exclusive. */
  range: xRange({ low: "r0", high: "r1" }),
};

export type BlocksState = PageState<typeof BLOCKS>;

/** The frame of the sandwich; both sides show all of it. */
export function sandwichOf(frame: number | null): Partial<BlocksState> {
  return { frame, callersZoom: [], calleesZoom: [] };
}

/** Coloured by category, the orders by colour and by category are equal. */
export function ordersOf(colour: AllocationColour): readonly AllocationOrder[] {
  return colour === "category" ? ["category", "allocation"] : keysOf(ORDERS);
}

/** Colours are easiest to read in contiguous areas. */
export function orderOf({ order, colour }: Pick<BlocksState, "order" | "colour">) {
  const usual = colour === "category" ? "category" : "group";
  return order !== null && ordersOf(colour).includes(order) ? order : usual;
}

/** Why there is no time axis; "" where there is one. */
export function whyUntimed({ hasTimes, firstMs, lastMs }: HistoryDevice): string {
  if (!hasTimes || firstMs === null || lastMs === null) {
    return "This file does not say when its events happened";
  }
  if (lastMs < firstMs)
    return "The file’s clock goes back: its last event is before its first";
  return lastMs > firstMs ? "" : "All events of this file have the same time";
}
