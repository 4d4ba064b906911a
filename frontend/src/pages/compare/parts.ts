/** What A and B are made of: the tables of a comparison, their words and colours. Pure. */

import type {
  CompareResponse,
  CompareRunsResponse,
  CompareTable,
} from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import {
  categoryColour,
  categoryLabel,
  divergingColours,
  groupNamed,
  siteColour,
} from "../../model/category";

/** Of the two moments; else of the steps that were tracked. */
export function partsOf(
  runs: CompareRunsResponse | null,
  moments: CompareResponse | null,
): readonly CompareTable[] {
  const tables = (moments ?? runs)?.tables ?? [];
  return tables.filter(({ labels }) => labels.length > 0);
}

/** Among the categories stands the line that holds most of what has none. */
function isSite(by: CompareTable["by"], label: string): boolean {
  return by === "category" && label !== "unknown" && groupNamed(label) === "unknown";
}

export function partLabel(by: CompareTable["by"], label: string): string {
  return by === "category" && !isSite(by, label) ? categoryLabel(label) : label;
}

/** A category's own colour, else that of less or of more; a culprit is red. */
export function partColour(
  by: CompareTable["by"],
  label: string,
  change: number,
  culprits: ReadonlySet<string>,
  theme: Theme,
): string {
  const isCulprit = culprits.has(label);
  if (isCulprit || isSite(by, label)) return siteColour(theme, isCulprit);
  if (by === "category") return categoryColour(theme, groupNamed(label));
  const [less, more] = divergingColours(theme);
  return change < 0 ? less : more;
}

/** Categories, unless most of what differs has none: then lines. */
export function usualPart(parts: readonly CompareTable[]): CompareTable | undefined {
  const lines = parts.find(({ by }) => by === "line");
  const [first] = parts;
  return first?.labels[0] === "unknown" ? (lines ?? first) : first;
}
