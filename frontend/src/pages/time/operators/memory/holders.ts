/** What memory at a trace's peak is for: grouped, with its share and its colour. Pure. */

import type {
  OperatorMemoryResponse,
  TraceMemoryPeak,
} from "../../../../api/types.gen";
import { formatShare, type ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import {
  categoryColour,
  categoryColours,
  categoryLabel,
} from "../../../../model/category";
import type { Table } from "../../../../model/table";
import {
  absentCell,
  barOf,
  bytesCell,
  countCell,
  numberColumn,
} from "../../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../../widgets/row_table/row_table";

/** What rows are one of. */
export type HoldersBy = "category" | "module" | "phase" | "all";
export const HOLDERS_BY: readonly HoldersBy[] = ["category", "module", "phase", "all"];

/** Rows of the answer's lists; -1: none is known, or it is not asked for. */
export interface Holder {
  readonly category: number;
  readonly module: number;
  readonly phase: number;
  readonly numBytes: number;
  readonly numAllocations: number;
}

/** Holders that are alike in what is asked for, those of most bytes first. */
export function holdersBy(
  { holders }: TraceMemoryPeak,
  by: HoldersBy,
): readonly Holder[] {
  const found = new Map<string, Holder>();
  holders.numBytes.forEach((numBytes, row) => {
    const of = (word: "category" | "module" | "phase"): number =>
      by === word || by === "all" ? (holders[word][row] ?? -1) : -1;
    const place = {
      category: of("category"),
      module: of("module"),
      phase: of("phase"),
    };
    const key = `${place.category} ${place.module} ${place.phase}`;
    const before = found.get(key);
    found.set(key, {
      ...place,
      numBytes: (before?.numBytes ?? 0) + numBytes,
      numAllocations:
        (before?.numAllocations ?? 0) + (holders.numAllocations[row] ?? 0),
    });
  });
  return [...found.values()].sort((a, b) => b.numBytes - a.numBytes);
}

/** All that was allocated then: the allocator's total, or what is seen where that is more. */
export function wholeBytes({ allocatedBytes, seenBytes }: TraceMemoryPeak): number {
  return Math.max(allocatedBytes ?? 0, seenBytes);
}

/** A part of the bar of the peak; `category` -1: no event explains it. */
export interface PeakPart {
  readonly category: number;
  readonly label: string;
  readonly numBytes: number;
  readonly colour: string;
}

export function peakParts(
  data: OperatorMemoryResponse,
  peak: TraceMemoryPeak,
  theme: Theme,
): readonly PeakPart[] {
  const colours = categoryColours(theme, data.categories);
  const unknown = categoryColour(theme, "unknown");
  const parts = holdersBy(peak, "category").map(({ category, numBytes }) => ({
    category,
    label: categoryLabel(data.categories[category]?.name ?? "other"),
    numBytes,
    colour: colours[category] ?? unknown,
  }));
  if (peak.unseenBytes <= 0) return parts;
  const unseen = {
    category: -1,
    label: "Not seen",
    numBytes: peak.unseenBytes,
    colour: unknown,
  };
  return [...parts, unseen];
}

/** A category with its colour; what tells it, where that is known, when pointed at. */
export function categoryCell(
  data: OperatorMemoryResponse,
  colours: readonly string[],
  category: number,
  why?: string,
): RowCell {
  const colour = colours[category];
  const text = categoryLabel(data.categories[category]?.name ?? "other");
  return {
    text,
    ...(colour === undefined ? {} : { swatch: colour }),
    title: why === undefined || why === "" ? text : `${text}: ${why}`,
  };
}

export const PLACE_HELP = {
  category:
    "What the memory is for: the rules of recorded histories, over what the trace says around each allocation. Other: nothing says it.",
  module:
    "The innermost module that ran when it was allocated; needs with_stack or with_modules of torch.profiler",
  phase: "What ran when it was allocated: a part of the step, or FSDP2’s annotation",
} as const;

export function moduleCell(data: OperatorMemoryResponse, row: number): RowCell {
  const text = data.modules[row];
  return text === undefined
    ? absentCell("No module is known to have run then")
    : { text };
}

export function phaseCell(data: OperatorMemoryResponse, row: number): RowCell {
  const text = data.phases[row];
  return text === undefined
    ? absentCell("No part of the step is known then")
    : { text };
}

export function holderColumns(
  data: OperatorMemoryResponse,
  peak: TraceMemoryPeak,
  holders: readonly Holder[],
  by: HoldersBy,
  theme: Theme,
  unit: ByteUnit,
): readonly RowColumn[] {
  const colours = categoryColours(theme, data.categories);
  const whole = wholeBytes(peak);
  const most = holders[0]?.numBytes ?? 0;
  const place = (
    word: "category" | "module" | "phase",
    title: string,
    width: string,
    cell: (of: number) => RowCell,
  ): RowColumn => ({
    ...{ key: word, title, width, hint: PLACE_HELP[word], numeric: false },
    cell: (row) => cell(holders[row]?.[word] ?? -1),
  });
  const places: Readonly<Record<"category" | "module" | "phase", RowColumn>> = {
    category: place("category", "Category", "minmax(140px, 1fr)", (of) =>
      categoryCell(data, colours, of),
    ),
    module: place("module", "Module", "minmax(160px, 2fr)", (of) =>
      moduleCell(data, of),
    ),
    phase: place("phase", "Made in", "minmax(120px, 1fr)", (of) => phaseCell(data, of)),
  };
  const plain = categoryColour(theme, "param");
  const bytes = (value: number, row: number): RowCell => ({
    ...bytesCell(value, unit),
    bar: barOf(value, most, colours[holders[row]?.category ?? -1] ?? plain),
  });
  const sizes = holders.map(({ numBytes }) => numBytes);
  return [
    ...(by === "all" ? Object.values(places) : [places[by]]),
    numberColumn(
      "bytes",
      "At the peak",
      "120px",
      sizes,
      bytes,
      "Bytes that were allocated and not yet freed at the peak of the part shown",
    ),
    numberColumn(
      "share",
      "Share",
      "72px",
      sizes,
      (value) => ({ text: formatShare(value, whole) }),
      "Of the allocator’s total at the peak, or of what the trace shows where that is more",
    ),
    numberColumn(
      "allocations",
      "Allocations",
      "88px",
      holders.map(({ numAllocations }) => numAllocations),
      countCell,
      "Live ones at the peak",
    ),
  ];
}

export function holdersTable(
  data: OperatorMemoryResponse,
  peak: TraceMemoryPeak,
): Table {
  const holders = holdersBy(peak, "all");
  return {
    numRows: holders.length,
    columns: [
      {
        name: "category",
        values: holders.map(({ category }) => data.categories[category]?.name ?? ""),
      },
      {
        name: "module",
        values: holders.map(({ module }) => data.modules[module] ?? ""),
      },
      { name: "phase", values: holders.map(({ phase }) => data.phases[phase] ?? "") },
      { name: "num_bytes", values: holders.map(({ numBytes }) => numBytes) },
      {
        name: "num_allocations",
        values: holders.map(({ numAllocations }) => numAllocations),
      },
    ],
  };
}
