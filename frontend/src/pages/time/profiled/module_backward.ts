/** What a trace knows of the backward of its modules, or why it does not. Pure. */

import type { ModuleBackward, ModuleTimesResponse } from "../../../api/types.gen";

/** Why backward's part is not known, or what it rests on where that is not usual. */
export const BACKWARD_WORDS: Readonly<Record<ModuleBackward, string>> = {
  arrows: "",
  sequence_numbers:
    "Backward by sequence numbers: the trace has no forward-backward links.",
  not_run: "No backward: none ran while the profiler did.",
  not_linked:
    "No backward: the trace does not say whose its operators are. Profilers since torch 1.13 write forward-backward links.",
  not_in_modules:
    "No backward: the forward operators that it names lie in no module of the trace.",
};

export function knowsBackward({ backward }: Pick<ModuleTimesResponse, "backward">) {
  return backward === "arrows" || backward === "sequence_numbers";
}
