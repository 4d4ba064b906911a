/** What the table of a comparison lists, and what its waterfall shows. Pure. */

import type {
  CompareResponse,
  CompareRunsResponse,
  CompareSide,
  FigureKey,
  RunFigure,
} from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { categoryColour, categoryLabel, groupNamed } from "../../model/category";
import { momentText } from "../../widgets/block_stack/axis";
import type { DifferenceGroup, DifferenceRow } from "./difference_table";

const FIGURES: Readonly<Record<FigureKey, readonly [string, string]>> = {
  peak_allocated: ["Peak", "Highest allocated bytes of the run, as on the Overview"],
  peak_reserved: [
    "Reserved peak",
    "Highest bytes that the allocator held of the device",
  ],
  rss_peak: ["Peak RSS", "Highest resident memory of the process"],
  growth: ["Growth per step", "Of allocated memory, after the warm-up"],
  rss_growth: ["RSS growth per step", "Of resident memory, after the warm-up"],
  step_time: ["Step time (median)", "Over the steps, of the slowest rank"],
  samples: ["Samples per second", "Median over the steps, of all ranks together"],
  tokens: ["Tokens per second", "Median over the steps, of all ranks together"],
  ooms: ["Out-of-memory errors", "Of the rank with the most"],
};

function figureRow({ key, unit, a, b, aRank, bRank }: RunFigure): DifferenceRow {
  const [label, hint] = FIGURES[key];
  const ranks = [aRank, bRank].filter((rank) => rank !== null);
  const words =
    aRank === bRank || ranks.length < 2
      ? ranks.slice(0, 1).map((rank) => `rank ${rank}`)
      : [`rank ${ranks.join(" → ")}`];
  return {
    label,
    hint: ranks.length > 0 ? hint.replace("all ranks together", "one rank") : hint,
    ...(words[0] === undefined ? {} : { note: `· ${words[0]}` }),
    // The label says per what.
    unit: unit === "bytes_per_step" ? "bytes" : unit === "per_second" ? "count" : unit,
    a,
    b,
  };
}

const MOMENT: readonly (readonly [string, string, (side: CompareSide) => number])[] = [
  [
    "Live",
    "Blocks as asked for, those that wait to be freed too",
    (side) => side.activeBytes,
  ],
  [
    "Allocated",
    "Live blocks without those that wait to be freed",
    (side) => side.allocatedBytes,
  ],
  ["Reserved", "What the allocator held of the device", (side) => side.reservedBytes],
];

/** Which moment a side is, in words. */
export function momentWords({ moment, reference, device }: CompareSide): string {
  const words = [
    reference.rank === null ? "" : `rank ${reference.rank}`,
    `device ${device}`,
    momentText(moment.moment),
    moment.step === null ? "" : `step ${formatInteger(moment.step)}`,
    moment.phase,
  ];
  return words.filter((word) => word !== "").join(", ");
}

function ofMoments(answer: CompareResponse): DifferenceGroup {
  const { a, b } = answer;
  const when = ({ moment: { moment, step } }: CompareSide): string =>
    `${momentText(moment)}${step === null ? "" : `, step ${formatInteger(step)}`}`;
  return {
    title: "At these moments",
    note: `A: ${when(a)}; B: ${when(b)}`,
    rows: [
      ...MOMENT.map(([label, hint, of]) => ({
        label,
        hint,
        unit: "bytes" as const,
        a: of(a),
        b: of(b),
      })),
      { label: "Blocks", unit: "count" as const, a: a.numBlocks, b: b.numBlocks },
    ],
  };
}

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

/** Of the two moments; else of the steps that were tracked. */
export function partsOf(
  runs: CompareRunsResponse | null,
  moments: CompareResponse | null,
): readonly Parts[] {
  if (moments === null) {
    return (runs?.tables ?? []).map(({ by, labels, aBytes, bBytes }) => ({
      by,
      labels,
      a: aBytes,
      b: bBytes,
      of: `at the peak of ${runs?.tablesOf ?? ""}`,
    }));
  }
  return (["category", "module", "line"] as const).flatMap((by) => {
    const table = moments.tables.find((one) => one.by === by);
    if (table === undefined) return [];
    const { labels, aBytes: a, bBytes: b } = table;
    return [{ by, labels, a, b, of: "" }];
  });
}

export const PART_TITLES: Readonly<Record<PartBy, string>> = {
  category: "Category",
  module: "Module",
  line: "Line",
};

export function partLabel(by: PartBy, label: string): string {
  if (by === "category") return categoryLabel(label);
  return label === "" ? "outside modules" : label;
}

const MAX_PARTS = 5;

function ofParts({ by, labels, a, b, of }: Parts, theme: Theme): DifferenceGroup {
  const known = (value: number | undefined): number | null =>
    value === undefined || Number.isNaN(value) ? null : value;
  const rows = labels.map((label, row) => ({
    label: partLabel(by, label),
    ...(by === "category" ? { swatch: categoryColour(theme, groupNamed(label)) } : {}),
    unit: "bytes" as const,
    a: known(a[row]),
    b: known(b[row]),
  }));
  return {
    title: `By ${PART_TITLES[by].toLowerCase()}`,
    note: of,
    rows:
      by === "category"
        ? rows.filter(({ a: x, b: y }) => x !== 0 || y !== 0)
        : rows.slice(0, MAX_PARTS),
  };
}

export function groupsOf(
  runs: CompareRunsResponse | null,
  moments: CompareResponse | null,
  theme: Theme,
): readonly DifferenceGroup[] {
  const figures = runs?.figures ?? [];
  return [
    ...(figures.length > 0
      ? [{ title: "Whole run", mixed: true as const, rows: figures.map(figureRow) }]
      : []),
    ...(moments === null ? [] : [ofMoments(moments)]),
    ...partsOf(runs, moments)
      .filter(({ labels }) => labels.length > 0)
      .map((parts) => ofParts(parts, theme)),
  ];
}
