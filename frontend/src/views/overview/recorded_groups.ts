/** Recorded sources apart from the missing, and equal reasons said once; pure. */

import type { Recorded } from "../../api/types.gen";
import { sentenceCase } from "../../model/column_label";

/** Sources that are missing on as many ranks for the same reason. */
export interface MissingGroup extends Pick<
  Recorded,
  "status" | "numRanks" | "reason" | "remedy"
> {
  readonly sources: readonly string[];
}

export interface RecordedGroups {
  readonly present: readonly Recorded[];
  readonly missing: readonly MissingGroup[];
}

const STATUS_ORDER: readonly Recorded["status"][] = ["failed", "absent", "off"];

export function groupRecorded(recorded: readonly Recorded[]): RecordedGroups {
  const groups = new Map<string, { first: Recorded; sources: string[] }>();
  const present: Recorded[] = [];
  for (const one of recorded) {
    if (one.status === "recorded") {
      present.push(one);
      continue;
    }
    const key = JSON.stringify([one.status, one.numRanks, one.reason, one.remedy]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { first: one, sources: [one.source] });
    else group.sources.push(one.source);
  }
  const missing = [...groups.values()]
    .map(({ first, sources }) => ({ ...first, sources: sources.map(sentenceCase) }))
    .sort((a, b) => STATUS_ORDER.indexOf(a.status) - STATUS_ORDER.indexOf(b.status));
  return { present, missing };
}
