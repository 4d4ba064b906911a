/** The columns of the table of a trace's allocations. Pure. */

import type { OperatorMemoryResponse, TraceAllocations } from "../../../api/types.gen";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import { categoryColour, categoryColours } from "../../../model/category";
import type { Sort } from "../../../model/shown_rows";
import type { Table } from "../../../model/table";
import {
  barOf,
  durationCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../widgets/row_table/columns";
import type { RowColumn } from "../../../widgets/row_table/row_table";
import { categoryCell, moduleCell, PLACE_HELP, phaseCell } from "./holders";

export const USUAL_ALLOCATIONS: Sort = { key: "size", descending: true };
export const ALLOCATION_KEYS: readonly string[] = [
  ...["operator", "category", "module", "phase"],
  ...["size", "allocated", "released", "duration"],
];

/** Names by row of the allocations; "" where no operator is known. */
export function allocationNames(data: OperatorMemoryResponse): readonly string[] {
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
  const texts = ["operator", "category", "module", "phase"].map((key) =>
    allocationValues(data, key),
  );
  const kept = new Set<number>();
  data.allocations.numBytes.forEach((_, row) => {
    const holds = texts.some((values) =>
      String(values?.[row] ?? "")
        .toLowerCase()
        .includes(wanted),
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

export function allocationValues(
  data: OperatorMemoryResponse,
  key: string,
): ArrayLike<number> | readonly string[] | undefined {
  const { allocations } = data;
  if (key === "operator") return allocationNames(data);
  if (key === "category") return categoryNames(data);
  if (key === "module") return rowsOf(data.modules, allocations.module);
  if (key === "phase") return rowsOf(data.phases, allocations.phase);
  if (key === "size") return allocations.numBytes;
  if (key === "allocated") return allocations.allocatedMs;
  if (key === "released") return allocations.releasedMs;
  return key === "duration" ? lifetimes(allocations) : undefined;
}

export function allocationColumns(
  data: OperatorMemoryResponse,
  unit: ByteUnit,
  theme: Theme,
): readonly RowColumn[] {
  const colours = categoryColours(theme, data.categories);
  const { allocations, hasAddresses } = data;
  const names = allocationNames(data);
  const lasted = lifetimes(allocations);
  const plain = categoryColour(theme, "unknown");
  const largest = longestOf(allocations.numBytes);
  const unreleased = hasAddresses ? "not freed" : "–";
  const moment = (
    key: string,
    title: string,
    values: Float64Array,
    absent: string,
    why: string,
    hint: string,
  ): RowColumn =>
    numberColumn(
      key,
      title,
      "88px",
      (row) => {
        const ms = values[row] ?? NaN;
        return Number.isNaN(ms) ? { text: absent, title: why } : durationCell(ms);
      },
      hint,
    );
  const unknown = hasAddresses
    ? "It was still there when the trace ended"
    : "The trace does not say which allocation a release belongs to";
  return [
    textColumn(
      "operator",
      "Operator",
      "minmax(132px, 1fr)",
      (row) => {
        const name = names[row] ?? "";
        return name === ""
          ? { text: "unknown", title: "No operator ran when it was allocated" }
          : { text: name };
      },
      "The innermost operator that ran on the thread when it was allocated",
    ),
    textColumn(
      "category",
      "Category",
      "132px",
      (row) =>
        categoryCell(
          data,
          colours,
          allocations.category[row] ?? -1,
          data.evidence[allocations.evidence[row] ?? -1],
        ),
      PLACE_HELP.category,
    ),
    textColumn(
      "module",
      "Module",
      "minmax(104px, 1fr)",
      (row) => moduleCell(data, allocations.module[row] ?? -1),
      PLACE_HELP.module,
    ),
    textColumn(
      "phase",
      "Made in",
      "104px",
      (row) => phaseCell(data, allocations.phase[row] ?? -1),
      PLACE_HELP.phase,
    ),
    numberColumn(
      "size",
      "Size",
      "96px",
      (row) => {
        const bytes = allocations.numBytes[row] ?? 0;
        return {
          text: formatBytes(bytes, unit),
          title: formatBytesExact(bytes),
          bar: barOf(bytes, largest, colours[allocations.category[row] ?? -1] ?? plain),
        };
      },
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
      unreleased,
      unknown,
      "Since the trace began: the next release of the same address",
    ),
    moment(
      "duration",
      "Lived",
      lasted,
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
      { name: "operator", values: allocationNames(data) },
      { name: "category", values: categoryNames(data) },
      { name: "module", values: rowsOf(data.modules, allocations.module) },
      { name: "phase", values: rowsOf(data.phases, allocations.phase) },
      { name: "num_bytes", values: allocations.numBytes },
      { name: "allocated_ms", values: allocations.allocatedMs },
      { name: "released_ms", values: allocations.releasedMs },
      { name: "duration_ms", values: lifetimes(allocations) },
    ],
  };
}
