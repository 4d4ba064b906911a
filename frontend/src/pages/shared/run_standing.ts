/** How a run stands, in the list of runs and in their table. */

import type { RunStanding, RunStatus, RunSummary } from "../../api/types.gen";
import type { StatusLook } from "../../widgets/icon/icon";

export const STATUS_LOOKS: Readonly<Record<RunStatus, StatusLook>> = {
  out_of_memory: { word: "out of memory", icon: "cross", tone: "bad" },
  leak: { word: "leak", icon: "warning", tone: "warn" },
  stopped: { word: "stopped", icon: "warning", tone: "warn" },
  live: { word: "live", icon: "check", tone: "ok" },
  warned: { word: "warning", icon: "warning", tone: "warn" },
  fine: { word: "fine", icon: "check", tone: "ok" },
};

/** null: nothing is known of it. */
export function standingLook({
  status,
  finding,
}: Pick<RunStanding, "finding" | "status">): StatusLook | null {
  if (status === null) return null;
  const look = STATUS_LOOKS[status];
  return finding === "" ? look : { ...look, word: finding.toLowerCase() };
}

/** A recording describes itself. */
const KINDS: Readonly<Record<RunSummary["madeOf"], readonly string[]>> = {
  recording: [],
  snapshots: ["snapshots"],
  traces: ["traces"],
  memprofiler: ["MemProfiler's files"],
};

export function kindOf(run: RunSummary): readonly string[] {
  if (run.simulated) return ["simulated"];
  return run.virtualGpu === "" ? KINDS[run.madeOf] : ["virtual"];
}
