/** Collectives that several ranks show, by process group: skew, and who comes last. Pure. */

import type { DistributedResponse } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import type { Sort } from "../../../model/shown_rows";
import { partColour } from "../../../render/palette";
import {
  absentCell,
  barOf,
  countCell,
  durationCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../widgets/row_table/row_table";

const UNKNOWN = absentCell(
  "Not known: not all ranks of this group have a trace here, and the last one may be among the others",
);

/** As the server sends them: the longest waits in all first. */
export const USUAL_GROUPS: Sort = { key: "waits", descending: true };

export function groupValues(
  { groups: own }: DistributedResponse,
  key: string,
): ArrayLike<number> | readonly string[] | undefined {
  switch (key) {
    case "kind":
      return own.kind;
    case "group":
      return own.group;
    case "ranks":
      return own.numRanks;
    case "matched":
      return own.numMatched;
    case "mean":
      return own.meanSkewMs;
    case "max":
      return own.maxSkewMs;
    case "last":
      return own.lastRank;
    case "share":
      return own.lastShare;
    default:
      return undefined;
  }
}

export function kindColumn(kinds: readonly string[]): RowColumn {
  return textColumn(
    "kind",
    "Collective",
    "minmax(112px, 1fr)",
    kinds,
    "By the kernel’s name, and the collective’s own metadata where the trace has them",
  );
}

/** `sizes`: ranks of each group, where they are told. */
export function groupColumn(
  groups: readonly string[],
  sizes?: ArrayLike<number>,
): RowColumn {
  const cell = (row: number): RowCell => {
    const text = groups[row] ?? "";
    const named = text === "" ? absentCell("The trace does not name it") : { text };
    const size = sizes?.[row] ?? -1;
    return size > 0 ? { ...named, note: `${size} ranks` } : named;
  };
  const hint = "The process group, as the profiler names it";
  return textColumn("group", "Group", "minmax(96px, 1fr)", cell, hint);
}

export function groupColumns(
  { groups: own }: DistributedResponse,
  theme: Theme,
): readonly RowColumn[] {
  const colour = partColour(theme, "other");
  const most = longestOf(own.meanSkewMs.filter((ms) => !Number.isNaN(ms)));
  return [
    kindColumn(own.kind),
    groupColumn(own.group),
    numberColumn(
      "ranks",
      "Ranks",
      "64px",
      (row) => countCell(own.numRanks[row] ?? 0),
      "Ranks whose traces show these collectives",
    ),
    numberColumn(
      "matched",
      "Collectives",
      "88px",
      (row) => countCell(own.numMatched[row] ?? 0),
      "Collectives that several of the ranks show, over the whole cycle: by the profiler’s sequence number, else by their order",
    ),
    numberColumn(
      "mean",
      "Mean skew",
      "104px",
      (row) => {
        const ms = own.meanSkewMs[row] ?? NaN;
        if (Number.isNaN(ms)) return UNKNOWN;
        return { ...durationCell(ms), bar: barOf(ms, most, colour) };
      },
      "How long the first rank waits for the last one, in the mean: longest − shortest duration of a collective. No clocks are compared.",
    ),
    numberColumn(
      "max",
      "Largest skew",
      "104px",
      (row) => {
        const ms = own.maxSkewMs[row] ?? NaN;
        return Number.isNaN(ms) ? UNKNOWN : durationCell(ms);
      },
      "Of the collective in which the first rank waited longest",
    ),
    numberColumn(
      "last",
      "Straggler",
      "88px",
      (row) => {
        const rank = own.lastRank[row] ?? -1;
        return rank < 0 ? UNKNOWN : { text: `rank ${rank}` };
      },
      "The rank that came last most often: it measured the shortest duration",
    ),
    numberColumn(
      "share",
      "Last in",
      "72px",
      (row) => {
        const share = 100 * (own.lastShare[row] ?? NaN);
        if (Number.isNaN(share)) return UNKNOWN;
        return { text: `${share.toFixed(0)} %`, title: `${share} %` };
      },
      "Collectives in which the straggler came last ÷ collectives. Of equal ranks each has about 1 ÷ their number.",
    ),
  ];
}
