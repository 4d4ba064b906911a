/** What Blocks calls things. Pure. */

import type {
  AllocationColour,
  AllocationOrder,
  HistoryDevice,
} from "../../../api/types.gen";
import type { FlameMode } from "./state/params";

export const ORDER_WORDS: Readonly<Record<AllocationOrder, readonly [string, string]>> =
  {
    category: ["Category", "Categories upon each other, each in order of allocation"],
    group: ["Colour", "Blocks of one colour together"],
    allocation: ["Allocation", "All in order of allocation, as memory_viz stacks them"],
  };

/** Why there is no axis of time, in a short sentence; "" where there is one. */
export function whyUntimed(device: HistoryDevice): string {
  const { hasTimes, firstMs, lastMs } = device;
  if (!hasTimes || firstMs === null || lastMs === null) {
    return "This file does not say when its events happened";
  }
  if (lastMs < firstMs)
    return "The file’s clock goes back: its last event is before its first";
  return lastMs > firstMs ? "" : "All events of this file have the same time";
}

export const COLOUR_WORDS: Readonly<Record<AllocationColour, string>> = {
  category: "category",
  module: "module",
  stack: "line of code",
  age: "age",
  stream: "stream",
  pool: "memory pool",
};

export const MODE_WORDS: Readonly<Record<FlameMode, readonly [string, string]>> = {
  tree: ["Flame", "From the outermost caller down to the line that allocated"],
  sandwich: ["Sandwich", "What calls one frame, and what it calls"],
  difference: ["Difference", "What grew and what shrank since the marked moment"],
};
