/** The columns of the table of a trace's allocations. Pure. */

import type {
  OperatorMemoryResponse,
  TraceAllocations,
} from "../../../../api/types.gen";
import type { ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import { categoryColour, categoryColours } from "../../../../model/category";
import type { Sort } from "../../../../model/shown_rows";
import type { Table } from "../../../../model/table";
import {
  barOf,
  bytesCell,
  durationCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../../widgets/row_table/row_table";
import { categoryCell, moduleCell, PLACE_HELP, phaseCell } from "./holders";

export const USUAL_ALLOCATIONS: Sort = { key: "size", descending: true };
/** Names by row of the allocations; "" where no operator is known. */
function allocationNames(data: OperatorMemoryResponse): readonly string[] {
  return Array.from(
    data.allocations.operator,
    (operator) => data.operators[operator] ?? "",
  );
}

/** Names by row; "" where none is known. */
function rowsOf(names: readonly string[], rows: Int32Array): readonly string[] {
  return Array.from(rows, (row) => names[row] ?? "");
}

function categoryNames({
  categories,
  allocations,
}: OperatorMemoryResponse): readonly string[] {
  return Array.from(allocations.category, (row) => categories[row]?.name ?? "");
}

/** Rows of which the operator, category, module or phase holds a text. */
export function allocationsHolding(
  data: OperatorMemoryResponse,
  text: string,
): ReadonlySet<number> | null {
  const wanted = text.toLowerCase();
  if (wanted === "") return null;
  const texts = Object.values(namesOf(data));
  const kept = new Set<number>();
  data.allocations.numBytes.forEach((_, row) => {
    const holds = texts.some((values) =>
      (values[row] ?? "").toLowerCase().includes(wanted),
    );
    if (holds) kept.add(row);
  });
  return kept;
}

/** Milliseconds; NaN where the trace does not hold both ends. */
export function lifetimes(allocations: TraceAllocations): Float64Array {
  return allocations.releasedMs.map(
    (end, row) => end - (allocations.allocatedMs[row] ?? NaN),
  );
}

/** What is known of each allocation by name. */
function namesOf(data: OperatorMemoryResponse) {
  const { allocations } = data;
  return {
    operator: allocationNames(data),
    category: categoryNames(data),
    module: rowsOf(data.modules, allocations.module),
    phase: rowsOf(data.phases, allocations.phase),
  };
}

export function allocationColumns(
  data: OperatorMemoryResponse,
  unit: ByteUnit,
  theme: Theme,
): readonly RowColumn[] {
  const colours = categoryColours(theme, data.categories);
  const { allocations, hasAddresses } = data;
  const names = namesOf(data);
  const plain = categoryColour(theme, "unknown");
  const largest = longestOf(allocations.numBytes);
  const moment = (
    key: string,
    title: string,
    values: Float64Array,
    absent: string,
    why: string,
    hint: string,
  ): RowColumn => {
    const cell = (ms: number): RowCell =>
      Number.isNaN(ms) ? { text: absent, title: why } : durationCell(ms);
    return numberColumn(key, title, "88px", values, cell, hint);
  };
  const unknown = hasAddresses
    ? "It was still there when the trace ended"
    : "The trace does not say which allocation a release belongs to";
  const operator = (name: string): RowCell =>
    name === ""
      ? { text: "unknown", title: "No operator ran when it was allocated" }
      : { text: name };
  const category = (_: string, row: number): RowCell =>
    categoryCell(
      data,
      colours,
      allocations.category[row] ?? -1,
      data.evidence[allocations.evidence[row] ?? -1],
    );
  const size = (bytes: number, row: number): RowCell => ({
    ...bytesCell(bytes, unit),
    bar: barOf(bytes, largest, colours[allocations.category[row] ?? -1] ?? plain),
  });
  return [
    textColumn(
      "operator",
      "Operator",
      "minmax(132px, 1fr)",
      names.operator,
      "The innermost operator that ran on the thread when it was allocated",
      operator,
    ),
    textColumn(
      "category",
      "Category",
      "132px",
      names.category,
      PLACE_HELP.category,
      category,
    ),
    textColumn(
      "module",
      "Module",
      "minmax(104px, 1fr)",
      names.module,
      PLACE_HELP.module,
      (_, row) => moduleCell(data, allocations.module[row] ?? -1),
    ),
    textColumn("phase", "Made in", "104px", names.phase, PLACE_HELP.phase, (_, row) =>
      phaseCell(data, allocations.phase[row] ?? -1),
    ),
    numberColumn(
      "size",
      "Size",
      "96px",
      allocations.numBytes,
      size,
      "Bytes as the allocator reported them: on an accelerator rounded up to its blocks",
    ),
    moment(
      "allocated",
      "Allocated",
      allocations.allocatedMs,
      "before",
      "Before the trace began",
      "Since the trace began",
    ),
    moment(
      "released",
      "Released",
      allocations.releasedMs,
      hasAddresses ? "not freed" : "–",
      unknown,
      "Since the trace began: the next release of the same address",
    ),
    moment(
      "duration",
      "Lived",
      lifetimes(allocations),
      "–",
      "The trace does not hold both its beginning and its end",
      "Released − allocated",
    ),
  ];
}

export function allocationsTable(data: OperatorMemoryResponse): Table {
  const { allocations } = data;
  return {
    numRows: allocations.numBytes.length,
    columns: [
      ...Object.entries(namesOf(data)).map(([name, values]) => ({ name, values })),
      { name: "num_bytes", values: allocations.numBytes },
      { name: "allocated_ms", values: allocations.allocatedMs },
      { name: "released_ms", values: allocations.releasedMs },
      { name: "duration_ms", values: lifetimes(allocations) },
    ],
  };
}
