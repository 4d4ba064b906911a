/** Columns of the operators' table: those that hold anything. Pure. */

import type { TraceReportOperators } from "../../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../../base/bytes";
import type { Sort } from "../../../../model/shown_rows";
import { numberColumn, textColumn } from "../../../../widgets/row_table/columns";
import type { RowColumn } from "../../../../widgets/row_table/row_table";
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
    textColumn("name", "Operator", "minmax(200px, 1fr)", operators.name),
    ...numbers.map(([key, title, hint]) => {
      const width = key === "calls" ? "72px" : key.endsWith("Bytes") ? "132px" : "96px";
      const cell = (value: number) => ({
        text: text(key, value),
        title: exact(key, value),
      });
      return numberColumn(key, title, width, operators[key], cell, hint);
    }),
  ];
}
