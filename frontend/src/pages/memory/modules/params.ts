/** The Modules page's words in the URL, read and checked. Pure. */

import type {
  ModuleBaseline,
  ModuleMeasure,
  ModulesResponse,
} from "../../../api/types.gen";
import type { Query } from "../../../api/client";
import type { RangeWords } from "../../shared/range/params";

/** The part of the window that the timeline shows. */
export const WINDOW_RANGE: RangeWords = { low: "t0", high: "t1" };

export interface ModulesParams {
  /** "" leaves these to the server; it answers with what it shows. */
  readonly window: string;
  readonly state: string;
  readonly call: string;
  readonly device: string;
  readonly measure: ModuleMeasure;
  readonly against: string;
  readonly againstState: string;
  readonly againstWindow: string;
  readonly againstRank: string;
  /** Fqn of the module whose details are open; "" for none. */
  readonly module: string;
  readonly axis: "time" | "event";
  readonly flat: boolean;
  /** Levels that are open, or shown in the flat list; null where none was chosen. */
  readonly depth: number | null;
  readonly find: string;
  /** Column the rows are ordered by; `MODEL_ORDER` keeps the order of the model. */
  readonly sort: string;
  readonly descending: boolean;
}

/** Levels open in the tree at first, besides the way to what takes most. */
export const FIRST_DEPTH = 1;
export const ALL_LEVELS = Infinity;

/** The largest first, where nothing else was chosen. */
const FIRST_SORT = "-held";
export const MODEL_ORDER = "model";

export function readModules(params: ReadonlyMap<string, string>): ModulesParams {
  const word = (name: string): string => params.get(name) ?? "";
  const depth = word("depth");
  const sort = word("sort") === "" ? FIRST_SORT : word("sort");
  return {
    window: word("window"),
    state: word("state"),
    call: word("call"),
    device: word("device"),
    measure: word("measure") === "total" ? "total" : "held",
    against: word("against"),
    againstState: word("against_state"),
    againstWindow: word("against_window"),
    againstRank: word("against_rank"),
    module: word("module"),
    axis: word("axis") === "event" ? "event" : "time",
    flat: word("flat") === "1",
    depth:
      depth === "all" ? ALL_LEVELS : /^\d{1,3}$/.test(depth) ? Number(depth) : null,
    find: word("find"),
    sort: sort.replace(/^-/, ""),
    descending: sort.startsWith("-"),
  };
}

export function modulesQuery(
  run: string,
  rank: number | null,
  params: ModulesParams,
): Query {
  return {
    run,
    rank,
    window: params.window,
    state: params.state,
    call: params.call,
    device: params.device,
    measure: params.measure,
    against: params.against,
    against_state: params.againstState,
    against_window: params.againstWindow,
    against_rank: params.againstRank,
  };
}

/** What the answer is about, said in full: for further questions about the same. */
export function subjectOf(data: ModulesResponse): Query {
  return {
    run: data.run.id,
    rank: data.rank,
    window: data.window,
    device: data.device,
  };
}

type Words = Readonly<Record<string, string | null>>;

/** What is compared with, as one choice: `median`, `rank:3`, `state:window_start`. */
export function againstValue(baseline: ModuleBaseline | null): string {
  if (baseline === null || baseline.kind === "median") return baseline?.kind ?? "";
  const { kind } = baseline;
  return `${kind}:${baseline[kind] ?? ""}`;
}

/** The words of such a choice; none for "". */
export function againstWords(value: string): Words {
  const [kind = "", ...rest] = value.split(":");
  const which = (of: ModuleBaseline["kind"]) => (kind === of ? rest.join(":") : null);
  return {
    against: kind === "" ? null : kind,
    against_state: which("state"),
    against_window: which("window"),
    against_rank: which("rank"),
  };
}

/**
 * The words that choose what is shown. A rank's total differs from module to module only
 * where each has a moment of its own, and what modules hold adds up at the peak.
 */
export function measureWords(
  measure: ModuleMeasure,
  data: Pick<ModulesResponse, "states">,
): Words {
  if (measure === "held") return { measure: null, state: null, call: null };
  const own = (["after_post_forward", "peak_forward", "peak_backward"] as const).find(
    (state) => data.states.includes(state),
  );
  return { measure, state: own ?? null, call: null };
}

/** The word for a click on a heading: largest first, smallest, the model's order. */
export function sortAfterClick(params: ModulesParams, key: string): string | null {
  if (params.sort !== key) return `-${key}` === FIRST_SORT ? null : `-${key}`;
  return params.descending ? key : MODEL_ORDER;
}
