/** Recorded sources apart from the missing, and equal reasons said once; pure. */

import type { Recorded } from "../../api/types.gen";
import { asSentence, sourceLabel } from "../../model/words/source_label";

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

/**
 * `whole` is what all ranks of the run say, where `recorded` is what one rank says. What
 * a rank leaves to another one is told by that one: recorded, or why it is not there.
 */
export function groupRecorded(
  recorded: readonly Recorded[],
  whole: readonly Recorded[] = recorded,
): RecordedGroups {
  const tellers = new Map(
    whole.filter((one) => one.status !== "off").map((one) => [one.source, one]),
  );
  for (const one of whole) if (one.status === "recorded") tellers.set(one.source, one);
  const here = new Set(
    recorded.filter((one) => one.status !== "off").map((one) => one.source),
  );
  const groups = new Map<string, MissingGroup & { readonly sources: string[] }>();
  const present: PresentSource[] = [];
  for (const said of recorded) {
    const teller = said.status === "off" ? tellers.get(said.source) : undefined;
    if (teller !== undefined && here.has(said.source)) continue;
    if (said.status === "recorded") {
      const left = recorded.find((o) => o.source === said.source && o.status === "off");
      present.push({
        source: sourceLabel(said.source),
        numRanks: said.numRanks,
        cost: said.cost,
        elsewhere: asSentence(left?.reason ?? ""),
      });
      continue;
    }
    const elsewhere = teller?.status === "recorded";
    const one =
      teller === undefined || elsewhere ? said : { ...teller, numRanks: said.numRanks };
    const status = elsewhere ? "elsewhere" : one.status;
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
