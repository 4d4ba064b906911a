/** The columns of the table of operators by memory. Pure. */

import type {
  OperatorMemoryResponse,
  OperatorMemoryRows,
} from "../../../../api/types.gen";
import type { ByteUnit } from "../../../../base/bytes";
import type { Sort } from "../../../../model/shown_rows";
import type { Table } from "../../../../model/table";
import {
  barOf,
  bytesCell,
  countCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../../widgets/row_table/row_table";

export const USUAL_MEMORY: Sort = { key: "self_increase", descending: true };

/** The route's words of the columns that it sorts by. */
export const MEMORY_WORDS: ReadonlyMap<string, string> = new Map([
  ["name", "name"],
  ["calls", "num_calls"],
  ["self_increase", "self_increase_bytes"],
  ["increase", "increase_bytes"],
  ["self_allocations", "self_num_allocations"],
  ["allocations", "num_allocations"],
  ["self_allocated", "self_allocated_bytes"],
  ["allocated", "allocated_bytes"],
]);

export function memoryColumns(
  rows: OperatorMemoryRows,
  unit: ByteUnit,
  colour: string,
): readonly RowColumn[] {
  const bytes = (key: string, title: string, values: Float64Array, hint: string) => {
    const longest = longestOf(values);
    // What was given back has no length that could be drawn.
    const cell = (value: number): RowCell => ({
      ...bytesCell(value, unit),
      bar: barOf(value, longest, colour),
    });
    return numberColumn(key, title, "104px", values, cell, hint);
  };
  const count = (key: string, title: string, values: ArrayLike<number>, hint: string) =>
    numberColumn(key, title, "84px", values, countCell, hint);
  const { numCalls } = rows;
  return [
    textColumn("name", "Operator", "minmax(160px, 1fr)", rows.name),
    numberColumn(
      "calls",
      "Calls",
      "72px",
      numCalls,
      countCell,
      "How often it was called",
    ),
    bytes(
      "self_increase",
      "Self increase",
      rows.selfIncreaseBytes,
      "What it allocated less what was freed of it, without the operators it calls",
    ),
    bytes(
      "increase",
      "Increase",
      rows.increaseBytes,
      "What it allocated less what was freed of it, with the operators it calls",
    ),
    count(
      "self_allocations",
      "Self allocs",
      rows.selfNumAllocations,
      "Allocations, without those of the operators it calls",
    ),
    count(
      "allocations",
      "Allocs",
      rows.numAllocations,
      "Allocations, with those of the operators it calls",
    ),
    bytes(
      "self_allocated",
      "Self allocated",
      rows.selfAllocatedBytes,
      "Sum of its allocations, whatever was freed later",
    ),
    bytes(
      "allocated",
      "Allocated",
      rows.allocatedBytes,
      "Sum of its allocations and those of the operators it calls",
    ),
  ];
}

export function memoryTable({ rows }: OperatorMemoryResponse): Table {
  return {
    numRows: rows.name.length,
    columns: [
      { name: "operator", values: rows.name },
      { name: "calls", values: rows.numCalls },
      { name: "self_increase_bytes", values: rows.selfIncreaseBytes },
      { name: "increase_bytes", values: rows.increaseBytes },
      { name: "self_allocations", values: rows.selfNumAllocations },
      { name: "allocations", values: rows.numAllocations },
      { name: "self_allocated_bytes", values: rows.selfAllocatedBytes },
      { name: "allocated_bytes", values: rows.allocatedBytes },
    ],
  };
}

export function curveTable({ curve }: OperatorMemoryResponse): Table {
  return {
    numRows: curve.timeMs.length,
    columns: [
      { name: "time_ms", values: curve.timeMs },
      { name: "allocated_bytes", values: curve.allocatedBytes },
      { name: "reserved_bytes", values: curve.reservedBytes },
    ],
  };
}
