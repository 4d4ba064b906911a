/** The Compare page's words in the URL, read and checked. Pure. */

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

export interface CompareParams {
  readonly part: ComparePart;
  readonly a: SideParams;
  readonly b: SideParams;
  /** "" for the run of A. */
  readonly bRun: string;
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
      history: word("history"),
      device: whole(params.get("history_device")),
      moment: whole(params.get("moment"), -1),
      source: word("source"),
    },
    b: {
      history: word("b_history"),
      device: whole(params.get("b_device")),
      moment: whole(params.get("b_moment"), -1),
      source: word("b_source"),
    },
    bRun: word("b_run"),
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
