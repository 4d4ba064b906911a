/** The columns of the table of operators by memory. Pure. */

import { wireName } from "../../../api/decode";
import type {
  OperatorMemoryResponse,
  OperatorMemoryRows,
} from "../../../api/types.gen";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../../base/bytes";
import type { Sort } from "../../../model/shown_rows";
import type { Table } from "../../../model/table";
import {
  barOf,
  countCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../widgets/row_table/row_table";

export const USUAL_MEMORY: Sort = { key: "self_increase", descending: true };

const NUMBERS = {
  calls: "numCalls",
  self_increase: "selfIncreaseBytes",
  increase: "increaseBytes",
  self_allocations: "selfNumAllocations",
  allocations: "numAllocations",
  self_allocated: "selfAllocatedBytes",
  allocated: "allocatedBytes",
} as const;

type NumberKey = keyof typeof NUMBERS;

export const MEMORY_KEYS: readonly string[] = ["name", ...Object.keys(NUMBERS)];

function isNumberKey(key: string): key is NumberKey {
  return key in NUMBERS;
}

export function memoryValues(
  rows: OperatorMemoryRows,
  key: string,
): ArrayLike<number> | readonly string[] | undefined {
  if (key === "name") return rows.name;
  return isNumberKey(key) ? rows[NUMBERS[key]] : undefined;
}

/** The route's word of a column. */
export function memorySort(key: string): string {
  return isNumberKey(key) ? wireName(NUMBERS[key]) : key;
}

export function memoryColumns(
  rows: OperatorMemoryRows,
  unit: ByteUnit,
  colour: string,
): readonly RowColumn[] {
  const number = (
    key: NumberKey,
    title: string,
    width: string,
    hint: string,
    cell: (value: number) => RowCell,
  ): RowColumn =>
    numberColumn(key, title, width, (row) => cell(rows[NUMBERS[key]][row] ?? 0), hint);
  const bytes = (values: Float64Array): ((value: number) => RowCell) => {
    const longest = longestOf(values);
    return (value) => ({
      text: formatBytes(value, unit),
      title: formatBytesExact(value),
      // What was given back has no length that could be drawn.
      bar: barOf(value, longest, colour),
    });
  };
  return [
    textColumn("name", "Operator", "minmax(160px, 1fr)", rows.name),
    number("calls", "Calls", "72px", "How often it was called", countCell),
    number(
      "self_increase",
      "Self increase",
      "104px",
      "What it allocated less what was freed of it, without the operators it calls",
      bytes(rows.selfIncreaseBytes),
    ),
    number(
      "increase",
      "Increase",
      "104px",
      "What it allocated less what was freed of it, with the operators it calls",
      bytes(rows.increaseBytes),
    ),
    number(
      "self_allocations",
      "Self allocs",
      "84px",
      "Allocations, without those of the operators it calls",
      countCell,
    ),
    number(
      "allocations",
      "Allocs",
      "84px",
      "Allocations, with those of the operators it calls",
      countCell,
    ),
    number(
      "self_allocated",
      "Self allocated",
      "104px",
      "Sum of its allocations, whatever was freed later",
      bytes(rows.selfAllocatedBytes),
    ),
    number(
      "allocated",
      "Allocated",
      "104px",
      "Sum of its allocations and those of the operators it calls",
      bytes(rows.allocatedBytes),
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
