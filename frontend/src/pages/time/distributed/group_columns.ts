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
  const cell = (text: string, row: number): RowCell => {
    const named = text === "" ? absentCell("The trace does not name it") : { text };
    const size = sizes?.[row] ?? -1;
    return size > 0 ? { ...named, note: `${size} ranks` } : named;
  };
  const hint = "The process group, as the profiler names it";
  return textColumn("group", "Group", "minmax(96px, 1fr)", groups, hint, cell);
}

function known(cell: (value: number) => RowCell) {
  return (value: number) => (Number.isNaN(value) ? UNKNOWN : cell(value));
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
      own.numRanks,
      countCell,
      "Ranks whose traces show these collectives",
    ),
    numberColumn(
      "matched",
      "Collectives",
      "88px",
      own.numMatched,
      countCell,
      "Collectives that several of the ranks show, over the whole cycle: by the profiler’s sequence number, else by their order",
    ),
    numberColumn(
      "mean",
      "Mean skew",
      "104px",
      own.meanSkewMs,
      known((ms) => ({ ...durationCell(ms), bar: barOf(ms, most, colour) })),
      "How long the first rank waits for the last one, on average: longest − shortest duration of a collective. No clocks are compared.",
    ),
    numberColumn(
      "max",
      "Largest skew",
      "104px",
      own.maxSkewMs,
      known(durationCell),
      "Of the collective in which the first rank waited longest",
    ),
    numberColumn(
      "last",
      "Straggler",
      "88px",
      own.lastRank,
      (rank) => (rank < 0 ? UNKNOWN : { text: `rank ${rank}` }),
      "The rank that came last most often: it measured the shortest duration",
    ),
    numberColumn(
      "share",
      "Last in",
      "72px",
      own.lastShare,
      known((share) => ({
        text: `${(100 * share).toFixed(0)} %`,
        title: `${100 * share} %`,
      })),
      "Collectives in which the straggler came last ÷ collectives. Of equal ranks each has about 1 ÷ their number.",
    ),
  ];
}
