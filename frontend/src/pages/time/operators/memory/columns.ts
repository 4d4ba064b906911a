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
import { nameCells } from "../../profiled/kernel_name";
import type { RowCell, RowColumn } from "../../../../widgets/row_table/row_table";

export const USUAL_MEMORY: Sort = { key: "self_increase_bytes", descending: true };

/** What the route sorts by. */
export const BY_MEMORY = [
  ...["name", "num_calls", "self_increase_bytes", "increase_bytes"],
  ...["self_num_allocations", "num_allocations", "self_allocated_bytes"],
  "allocated_bytes",
] as const;

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
    textColumn(
      "name",
      "Operator",
      "minmax(160px, 1fr)",
      rows.name,
      "The operator as PyTorch names it",
      nameCells(rows.name),
    ),
    numberColumn(
      "num_calls",
      "Calls",
      "72px",
      numCalls,
      countCell,
      "How often it was called",
    ),
    bytes(
      "self_increase_bytes",
      "Self increase",
      rows.selfIncreaseBytes,
      "What it allocated less what was freed of it, without the operators it calls",
    ),
    bytes(
      "increase_bytes",
      "Increase",
      rows.increaseBytes,
      "What it allocated less what was freed of it, with the operators it calls",
    ),
    count(
      "self_num_allocations",
      "Self allocs",
      rows.selfNumAllocations,
      "Allocations, without those of the operators it calls",
    ),
    count(
      "num_allocations",
      "Allocs",
      rows.numAllocations,
      "Allocations, with those of the operators it calls",
    ),
    bytes(
      "self_allocated_bytes",
      "Self allocated",
      rows.selfAllocatedBytes,
      "Sum of its allocations, whatever was freed later",
    ),
    bytes(
      "allocated_bytes",
      "Allocated",
      rows.allocatedBytes,
      "Sum of its allocations and those of the operators it calls",
    ),
  ];
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
