/** The Compare page's words in the URL, read and checked, and what it calls things. Pure. */

import type { StackMatch } from "../../api/types.gen";
import type { FrameChoice } from "../../model/stacks/call_stacks";
import { oneOf, whole } from "../memory/history/params";
import { TABLES, type ProfileTable } from "./profiles/words";

export type ComparePart = "two" | "ranks" | "profiles";

/** What the table lists. */
export type CompareRows = "stack" | "line" | "module" | "category" | "size";

/** Which of them: all, or those that only one side has. */
export type CompareOnly = "all" | "a" | "b";

/** One of the two, as the URL names it. */
export interface SideParams {
  /** "" leaves the choice to the server. */
  readonly history: string;
  readonly device: number | null;
  /** null: the peak. */
  readonly moment: number | null;
  /** The profiler's trace; "" leaves the choice to the page. */
  readonly source: string;
}

/** B is what was chosen on other pages too; A is what it is compared with. */
export interface CompareParams {
  readonly part: ComparePart;
  readonly a: SideParams;
  readonly b: SideParams;
  /** "" leaves the choice to the page. */
  readonly aRun: string;
  /** `all`, or a rank; null leaves the choice to the page. */
  readonly aRank: number | "all" | null;
  readonly match: StackMatch;
  readonly frames: FrameChoice;
  readonly rows: CompareRows;
  readonly only: CompareOnly;
  readonly find: string;
  /** Of the profiles: the table, "" or what of it, and "" or what it is counted per. */
  readonly table: ProfileTable;
  readonly measure: string;
  readonly per: "" | "step" | "trace";
}

/** Button and hint. */
export const PART_WORDS: Readonly<Record<ComparePart, readonly [string, string]>> = {
  two: ["A and B", "Two runs, ranks or moments"],
  ranks: ["All ranks", "The histories of all ranks beside each other"],
  profiles: ["Traces", "Two profiler traces: time by role, operator, kernel, module"],
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

export const PARTS: readonly ComparePart[] = ["two", "ranks", "profiles"];

export const ROWS: readonly CompareRows[] = [
  "line",
  "stack",
  "module",
  "category",
  "size",
];
export const ONLY: readonly CompareOnly[] = ["all", "a", "b"];
const FRAMES: readonly FrameChoice[] = ["user", "python", "all"];

/** `usual`: what is compared where the URL does not say it. */
export function readCompare(
  params: ReadonlyMap<string, string>,
  usual: ComparePart = "two",
): CompareParams {
  const word = (name: string): string => params.get(name) ?? "";
  return {
    part: oneOf(PARTS, word("part"), usual),
    a: {
      history: word("a_history"),
      device: whole(params.get("a_device")),
      moment: whole(params.get("a_moment"), -1),
      source: word("a_source"),
    },
    b: {
      history: word("history"),
      device: whole(params.get("history_device")),
      moment: whole(params.get("moment"), -1),
      source: word("source"),
    },
    aRun: word("a_run"),
    aRank: word("a_rank") === "all" ? "all" : whole(params.get("a_rank")),
    match: word("match") === "function" ? "function" : "exact",
    frames: oneOf(FRAMES, word("frames"), "python"),
    rows: oneOf(ROWS, word("by"), "line"),
    only: oneOf(ONLY, word("side"), "all"),
    find: word("find"),
    table: oneOf(TABLES, word("table"), "operators"),
    measure: word("measure"),
    per: oneOf(["", "step", "trace"], word("per"), ""),
  };
}
