/** Columns of the operators' table: those that hold anything. Pure. */

import type { TraceReportOperators } from "../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import { sortedRows, type Sort } from "../../../model/shown_rows";
import type { RowColumn } from "../../../widgets/row_table/row_table";
import { formatNs, formatNsExact } from "../words";
import { formatFlops } from "./words";

type Numbers = Exclude<keyof TraceReportOperators, "name">;

/** The order in which they are looked at first. */
export const USUAL: Sort = { key: "selfCpuNs", descending: true };

const TITLES: readonly (readonly [Numbers, string, string])[] = [
  ["calls", "Calls", "How often it ran"],
  ["selfCpuNs", "Self CPU", "Its time on the host without operators inside it"],
  ["cpuNs", "CPU", "Its time on the host"],
  ["selfDeviceNs", "Self device", "Time of the kernels that it launched itself"],
  ["deviceNs", "Device", "Time of the kernels launched in it"],
  [
    "selfCpuMemoryBytes",
    "Self CPU memory",
    "Allocated less freed on the host, by itself",
  ],
  ["cpuMemoryBytes", "CPU memory", "Allocated less freed on the host"],
  [
    "selfDeviceMemoryBytes",
    "Self device memory",
    "Allocated less freed on devices, by itself",
  ],
  ["deviceMemoryBytes", "Device memory", "Allocated less freed on devices"],
  ["flops", "FLOP", "As torch counts them"],
];

export function operatorColumns(
  operators: TraceReportOperators,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const text = (key: Numbers, value: number): string => {
    if (key.endsWith("Ns")) return formatNs(value);
    if (key.endsWith("Bytes")) return formatBytes(value, byteUnit);
    return key === "flops" ? formatFlops(value) : formatInteger(value);
  };
  const exact = (key: Numbers, value: number): string =>
    key.endsWith("Ns")
      ? formatNsExact(value)
      : `${formatInteger(value)}${key.endsWith("Bytes") ? " bytes" : ""}`;
  const numbers = TITLES.filter(([key]) => operators[key].some((one) => one !== 0));
  return [
    {
      key: "name",
      title: "Operator",
      numeric: false,
      width: "minmax(200px, 1fr)",
      sortable: true,
      cell: (row) => ({ text: operators.name[row] ?? "" }),
    },
    ...numbers.map(([key, title, hint]): RowColumn => ({
      key,
      title,
      hint,
      numeric: true,
      width: key === "calls" ? "72px" : key.endsWith("Bytes") ? "132px" : "96px",
      sortable: true,
      cell: (row) => {
        const value = operators[key][row] ?? 0;
        return { text: text(key, value), title: exact(key, value) };
      },
    })),
  ];
}

function isColumn(key: string): key is keyof TraceReportOperators {
  return key === "name" || TITLES.some(([one]) => one === key);
}

/** Rows in order; equal ones as the server gave them. */
export function sortedOperators(
  operators: TraceReportOperators,
  { key, descending }: Sort,
): readonly number[] {
  const values = isColumn(key) ? operators[key] : undefined;
  return sortedRows(operators.name.length, values, descending);
}
