/** Recorded sources apart from the missing, and equal reasons said once; pure. */

import type { Recorded } from "../../api/types.gen";
import { asSentence, sourceLabel } from "../../model/source_label";

export interface PresentSource {
  readonly source: string;
  readonly numRanks: number;
  readonly cost: string;
  /** Why the other ranks leave it out, e.g. a host is measured once; "" where none do. */
  readonly elsewhere: string;
}

/** Sources that are missing on as many ranks for the same reason. */
export interface MissingGroup extends Pick<Recorded, "numRanks" | "reason" | "remedy"> {
  /** "elsewhere": left out here because another rank records it. */
  readonly status: Recorded["status"] | "elsewhere";
  readonly sources: readonly string[];
}

export interface RecordedGroups {
  readonly present: readonly PresentSource[];
  readonly missing: readonly MissingGroup[];
}

const STATUS_ORDER: readonly MissingGroup["status"][] = [
  "failed",
  "absent",
  "off",
  "elsewhere",
];

/** `whole` is what all ranks of the run record, where `recorded` is one rank's. */
export function groupRecorded(
  recorded: readonly Recorded[],
  whole: readonly Recorded[] = recorded,
): RecordedGroups {
  const someRank = namesOf(whole);
  const here = namesOf(recorded);
  const isElsewhere = (one: Recorded): boolean =>
    one.status === "off" && someRank.has(one.source);
  const groups = new Map<string, MissingGroup & { readonly sources: string[] }>();
  const present: PresentSource[] = [];
  for (const one of recorded) {
    if (one.status === "recorded") {
      const others = recorded.find((o) => o.source === one.source && isElsewhere(o));
      present.push({
        source: sourceLabel(one.source),
        numRanks: one.numRanks,
        cost: one.cost,
        elsewhere: asSentence(others?.reason ?? ""),
      });
      continue;
    }
    // Ranks that leave a source to others are no gap: its own row says so.
    if (isElsewhere(one) && here.has(one.source)) continue;
    const status = isElsewhere(one) ? "elsewhere" : one.status;
    const key = JSON.stringify([status, one.numRanks, one.reason, one.remedy]);
    const group = groups.get(key);
    const source = sourceLabel(one.source);
    if (group !== undefined) group.sources.push(source);
    else {
      groups.set(key, {
        status,
        numRanks: one.numRanks,
        reason: asSentence(one.reason),
        remedy: asSentence(one.remedy),
        sources: [source],
      });
    }
  }
  const missing = [...groups.values()].sort(
    (a, b) => STATUS_ORDER.indexOf(a.status) - STATUS_ORDER.indexOf(b.status),
  );
  return { present, missing };
}

function namesOf(recorded: readonly Recorded[]): ReadonlySet<string> {
  const found = recorded.filter((one) => one.status === "recorded");
  return new Set(found.map((one) => one.source));
}
