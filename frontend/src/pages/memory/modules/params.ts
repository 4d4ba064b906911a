import type { ModulesResponse } from "../../../api/types.gen";
import type { Query } from "../../../api/client";
import {
  flag,
  oneOf,
  switched,
  optional,
  text,
  whole,
  type PageState,
  type usePageState,
} from "../../shared/page_state";
import { xRange } from "../../shared/range/params";
import type { ViewProps } from "../../shared/view_props";

export const WINDOW_RANGE = { low: "t0", high: "t1" };

/** Open levels at first, besides the way to the largest module. */
export const FIRST_DEPTH = 1;

const AXES = {
  time: ["Time", "Wall-clock time"],
  event: ["Events", "The same width for every event"],
} as const;

export const MODULES = {
  part: oneOf("part", ["memory", "time"], null),
  // Where unset, the server chooses and returns its choice.
  window: optional("window"),
  state: optional("state"),
  call: whole("call"),
  device: optional("device"),
  measure: oneOf("measure", ["held", "total"], "held"),
  against: optional("against"),
  module: optional("module"),
  axis: switched("axis", AXES, "time"),
  range: xRange(WINDOW_RANGE),
  flat: flag("flat"),
  /** Open levels of the tree, or levels in the list. */
  depth: whole("depth"),
  find: text("find"),
  source: optional("source"),
};

type ModulesState = PageState<typeof MODULES>;
type Setter = ReturnType<typeof usePageState<typeof MODULES>>[1];

export interface ModulesPage {
  readonly view: ViewProps;
  readonly state: ModulesState;
  readonly setState: Setter;
}

/** The answer's subject without defaults, for further requests about it. */
export function subjectOf(data: ModulesResponse): Query {
  const { run, rank, window, device } = data;
  return { run: run.id, rank, window, device };
}

/** A state in words, as the answer says it. */
export function stateWords({ states }: ModulesResponse, state: string): string {
  return (
    states.find((moment) => moment.state === state)?.words ?? state.replaceAll("_", " ")
  );
}

/**
 * The state of a measure: rank totals differ between modules only where each has a
 * moment of its own; bytes of modules add up at the peak.
 */
export function measureState(
  measure: ModulesState["measure"],
  { states }: Pick<ModulesResponse, "states">,
): Pick<ModulesState, "measure" | "state" | "call"> {
  const own = ["after_post_forward", "peak_forward", "peak_backward"].find((wanted) =>
    states.some(({ state }) => state === wanted),
  );
  return { measure, state: measure === "total" ? (own ?? null) : null, call: null };
}
