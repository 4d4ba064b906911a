/** The words of module memory: states, windows, what is compared with. Pure. */

import type {
  ModuleBaseline,
  ModulesResponse,
  ModuleState,
  ModuleWindow,
} from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import type { Boundary } from "../../../widgets/category_stack/spans";

export const STATE_WORDS: Readonly<Record<ModuleState, string>> = {
  before_pre_forward: "before pre-forward",
  after_pre_forward: "after pre-forward",
  before_post_forward: "before post-forward",
  after_post_forward: "after post-forward",
  peak_forward: "peak in forward",
  before_pre_backward: "before pre-backward",
  after_pre_backward: "after pre-backward",
  before_post_backward: "before post-backward",
  after_post_backward: "after post-backward",
  peak_backward: "peak in backward",
  pre_forward_ac: "before recomputed forward (AC)",
  post_forward_ac: "after recomputed forward (AC)",
  window_start: "start of the step",
  window_peak: "peak of the step",
  before_optimizer: "before the optimizer",
  after_optimizer: "after the optimizer",
  window_end: "end of the step",
};

const STATE_GROUPS: readonly (readonly [string, readonly ModuleState[]])[] = [
  [
    "Forward of each module",
    [
      "before_pre_forward",
      "after_pre_forward",
      "peak_forward",
      "before_post_forward",
      "after_post_forward",
    ],
  ],
  [
    "Backward of each module",
    [
      "before_pre_backward",
      "after_pre_backward",
      "peak_backward",
      "before_post_backward",
      "after_post_backward",
    ],
  ],
  ["Activation checkpointing", ["pre_forward_ac", "post_forward_ac"]],
  [
    "One moment for all modules",
    [
      "window_start",
      "window_peak",
      "before_optimizer",
      "after_optimizer",
      "window_end",
    ],
  ],
];

export interface Options<T> {
  readonly group: string;
  readonly options: readonly T[];
}

/** The states there are, by group, each group in order of time. */
export function stateOptions(
  states: readonly ModuleState[],
): readonly Options<ModuleState>[] {
  return STATE_GROUPS.map(([group, members]) => ({
    group,
    options: members.filter((state) => states.includes(state)),
  })).filter(({ options }) => options.length > 0);
}

/** A moment of the whole window, alike for every module. */
export function isWholeWindow(state: ModuleState): boolean {
  return STATE_GROUPS.at(-1)?.[1].includes(state) === true;
}

/** `iteration 3 · step 120`. */
export function windowWords({ iteration, step }: ModuleWindow): string {
  const call =
    iteration === 0 ? "taken by hand" : `iteration ${formatInteger(iteration)}`;
  return step === null ? call : `${call} · step ${formatInteger(step)}`;
}

/** `step 100`, or `train_batch, call 3`. */
export function callWords(data: Pick<ModulesResponse, "windows" | "window">): string {
  const found = data.windows.find((one) => one.id === data.window);
  if (found?.function === "step" && found.step !== null)
    return `step ${formatInteger(found.step)}`;
  if (found === undefined || found.function === "") return "the tracked call";
  return `${found.function}, call ${formatInteger(found.iteration)}`;
}

/** Windows by function, phase and attempt, the newest first in each. */
export function windowOptions(
  windows: readonly ModuleWindow[],
): readonly Options<ModuleWindow>[] {
  const attempts = new Set(windows.map((one) => one.attempt)).size;
  const groups = new Map<string, ModuleWindow[]>();
  for (const one of [...windows].reverse()) {
    const phase = one.phase === "train" || one.phase === "" ? "" : ` · ${one.phase}`;
    const attempt = attempts > 1 ? ` · attempt ${one.attempt}` : "";
    const name = one.function === "" ? "by hand" : one.function;
    const group = `${name}${phase}${attempt}`;
    const members = groups.get(group);
    if (members === undefined) groups.set(group, [one]);
    else members.push(one);
  }
  return [...groups].map(([group, options]) => ({ group, options }));
}

/** What differences are taken from, for headings and tooltips. */
export function baselineWords(
  baseline: ModuleBaseline,
  windows: readonly ModuleWindow[],
): string {
  switch (baseline.kind) {
    case "state":
      return STATE_WORDS[baseline.state];
    case "window": {
      const found = windows.find((one) => one.id === baseline.window);
      return found === undefined ? "another tracked step" : windowWords(found);
    }
    case "rank":
      return baseline.rank === null ? "another rank" : `rank ${baseline.rank}`;
    case "median": {
      const { numRanks, ofRanks } = baseline;
      const ranks =
        numRanks < ofRanks
          ? `${formatInteger(numRanks)} of ${formatInteger(ofRanks)}`
          : `all ${formatInteger(ofRanks)}`;
      return `the median of ${ranks} ranks`;
    }
  }
}

/** What choosing a boundary of the timeline shows in the table. */
export function boundaryWords({ module, state, call }: Boundary): string {
  const words = STATE_WORDS[state];
  if (module === null) return words;
  const which = call !== null && call > 0 ? `, call ${call + 1}` : "";
  return `${words} of ${module}${which}`;
}
