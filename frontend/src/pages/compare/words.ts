/** What the Compare page calls things. Pure. */

import type { FrameChoice } from "../../model/stacks/call_stacks";
import type { CompareOnly, ComparePart, CompareRows } from "./params";

export const PART_WORDS: Readonly<Record<ComparePart, readonly [string, string]>> = {
  two: ["A and B", "Two moments: of one history, or of two, of one run or of two"],
  ranks: ["All ranks", "The peaks of all ranks beside each other"],
  profiles: ["Profiles", "Two profiler traces: time by role, operator, kernel, module"],
};

/** Button, hint, heading of the column. */
export const ROW_WORDS: Readonly<
  Record<CompareRows, readonly [string, string, string]>
> = {
  line: ["Line", "The innermost line of your own code", "Allocated at"],
  stack: ["Stack", "Every call stack by itself", "Allocated at, called from"],
  module: ["Module", "The innermost module whose forward it was", "Module"],
  category: ["Category", "Params, optimizer, activations and so on", "Category"],
  size: ["Size", "Blocks by powers of two", "Size of the blocks"],
};

export const ONLY_WORDS: Readonly<Record<CompareOnly, readonly [string, string]>> = {
  all: ["All", "Rows of both sides"],
  a: ["Only in A", "What B does not have"],
  b: ["Only in B", "What A does not have"],
};

export const FRAME_WORDS: Readonly<Record<FrameChoice, readonly [string, string]>> = {
  user: ["My code", "Frames of your own files alone"],
  python: ["No torch", "Frames of your own files and of libraries, without torch’s"],
  all: ["All", "With torch’s own frames and native ones"],
};
