import type {
  CompareResponse,
  HistoryDevice,
  ProfileResponse,
} from "../../api/types.gen";
import { FRAME_WORDS } from "../../model/stacks/call_stacks";
import { SAME_RUN } from "../memory/history/moment";
import {
  oneOf,
  optional,
  readState,
  switched,
  text,
  whole,
  writeState,
  type PageState,
  type Word,
} from "../shared/page_state";
import type { ViewProps } from "../shared/view_props";

type Words = Readonly<Record<string, readonly [button: string, hint: string]>>;

export const PART_WORDS = {
  runs: ["Runs", "All runs in one table, to choose A and B"],
  two: ["A and B", "Two runs, ranks or moments"],
  ranks: ["All ranks", "The histories of all ranks beside each other"],
  profiles: ["Traces", "Two profiler traces: time by role, operator, kernel, module"],
} as const satisfies Words;

export const ROW_WORDS = {
  line: ["Line", "The innermost line of your own code"],
  stack: ["Stack", "Each call stack"],
  module: ["Module", "The innermost module whose forward it was"],
  category: ["Category", "Params, optimizer, activations and so on"],
  size: ["Size", "Blocks by powers of two"],
} as const satisfies Words;

const MATCH_WORDS = {
  exact: ["Lines", "The same lines of the same files"],
  function: [
    "Functions",
    "The same functions, whatever the line: for two versions of the code",
  ],
} as const satisfies Words;

const ONLY_WORDS = {
  all: ["All", "Rows of both sides"],
  a: ["Only in A", "What B does not have"],
  b: ["Only in B", "What A does not have"],
} as const satisfies Words;

export const TABLE_WORDS = {
  operators: ["Operators", "Time by operator"],
  kernels: ["Kernels", "Time by kernel"],
  calls: [
    "Call tree",
    "Time by module, annotation and operator, each below its caller",
  ],
  modules: ["Modules", "Time by module, each below the one around it"],
  memory: ["Memory", "Memory by operator, of the device with most events"],
} as const satisfies Words;

export const PER_WORDS = {
  trace: ["Trace", "Sums over each whole trace"],
  step: ["Step", "Sums divided by each trace’s number of profiled steps"],
} as const satisfies Words;

export function keysOf<T extends string>(labels: Readonly<Record<T, unknown>>) {
  return Object.keys(labels) as T[];
}

export interface SideState {
  /** "": the page chooses. */
  readonly history: string;
  readonly device: number | null;
  /** null: the peak. */
  readonly moment: number | null;
  readonly source: string | null;
}

export const NO_CHOICE: SideState = {
  history: "",
  device: null,
  moment: null,
  source: null,
};

/** The changes that make a run A, where `own` is the open one. */
export const ofRunA = (id: string, own: { readonly id: string }) => ({
  aRun: id === own.id ? SAME_RUN : id,
  aRank: "",
  a: NO_CHOICE,
});

function side(prefix: "a_" | ""): Word<SideState> {
  const schema = {
    history: text(`${prefix}history`),
    device: whole(prefix === "" ? "history_device" : "a_device", -1),
    moment: whole(`${prefix}moment`, -1),
    source: optional(`${prefix}source`),
  };
  return {
    read: (params) => readState(schema, params),
    write: (value) => writeState(schema, value),
  };
}

export const COMPARE = {
  part: oneOf("part", keysOf(PART_WORDS), null),
  /** B has the words that other pages share; A has its own. */
  a: side("a_"),
  b: side(""),
  /** "": the page chooses. */
  aRun: text("a_run"),
  /** `all`, or a rank. */
  aRank: text("a_rank"),
  match: switched("match", MATCH_WORDS, "exact"),
  frames: switched("frames", FRAME_WORDS, "python"),
  rows: oneOf("by", keysOf(ROW_WORDS), "line"),
  only: switched("side", ONLY_WORDS, "all"),
  find: text("find"),
  sort: optional("sort"),
  table: oneOf("table", keysOf(TABLE_WORDS), "operators"),
  measure: text("measure"),
  per: oneOf("per", keysOf(PER_WORDS), null),
};

type CompareState = PageState<typeof COMPARE>;

export interface PartProps {
  readonly view: ViewProps;
  readonly params: CompareState;
  readonly change: (changes: Partial<CompareState>, how?: "replace" | "push") => void;
}

export interface DifferenceProps extends PartProps {
  readonly answer: CompareResponse;
  readonly a: HistoryDevice;
  readonly b: HistoryDevice;
}

export interface TracesProps extends PartProps {
  readonly a: ProfileResponse;
  readonly b: ProfileResponse;
}
