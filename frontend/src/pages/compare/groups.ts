/** What the numbers of a comparison list, and what its waterfall shows. Pure. */

import type { CompareResponse, CompareRunsResponse } from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import { categoryColour, categoryLabel, groupNamed } from "../../model/category";
import type { DifferenceGroup } from "./difference_table";

export type PartBy = "category" | "module" | "line";

/** Bytes of both sides by something, largest difference first; NaN: unknown. */
export interface Parts {
  readonly by: PartBy;
  readonly labels: readonly string[];
  readonly a: Float64Array;
  readonly b: Float64Array;
  /** At which moment, where the table's heading does not say it. */
  readonly of: string;
}

export const PART_TITLES: Readonly<Record<PartBy, string>> = {
  category: "Category",
  module: "Module",
  line: "Line",
};

/** Of the two moments; else of the steps that were tracked. */
export function partsOf(
  runs: CompareRunsResponse | null,
  moments: CompareResponse | null,
): readonly Parts[] {
  const of = moments === null ? `at the peak of ${runs?.tablesOf ?? ""}` : "";
  return (
    (moments ?? runs)?.tables.flatMap(({ by, labels, aBytes: a, bBytes: b }) =>
      by === "size" || labels.length === 0 ? [] : [{ by, labels, a, b, of }],
    ) ?? []
  );
}

export function partLabel(by: PartBy, label: string): string {
  return by === "category" ? categoryLabel(label) : label;
}

const MAX_PARTS = 5;

function ofParts({ by, labels, a, b, of }: Parts, theme: Theme): DifferenceGroup {
  const known = (value: number | undefined): number | null =>
    value === undefined || Number.isNaN(value) ? null : value;
  const isCategory = by === "category";
  const rows = labels.map((label, row) => ({
    label: partLabel(by, label),
    ...(isCategory ? { swatch: categoryColour(theme, groupNamed(label)) } : {}),
    unit: "bytes" as const,
    a: known(a[row]),
    b: known(b[row]),
  }));
  return {
    title: `By ${by}`,
    note: of,
    rows: isCategory
      ? rows.filter(({ a: x, b: y }) => x !== 0 || y !== 0)
      : rows.slice(0, MAX_PARTS),
  };
}

export function groupsOf(
  runs: CompareRunsResponse | null,
  moments: CompareResponse | null,
  theme: Theme,
): readonly DifferenceGroup[] {
  return [
    { title: "Whole run", mixed: true as const, rows: runs?.figures ?? [] },
    {
      title: "At these moments",
      note: moments === null ? "" : `A: ${moments.a.words}; B: ${moments.b.words}`,
      rows: moments?.figures ?? [],
    },
    ...partsOf(runs, moments).map((parts) => ofParts(parts, theme)),
  ].filter(({ rows }) => rows.length > 0);
}
