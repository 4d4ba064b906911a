/** The columns of the table of operators by time. Pure. */

import { wireName } from "../../../api/decode";
import type { OperatorsResponse } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import type { Sort } from "../../../model/shown_rows";
import type { Table } from "../../../model/table";
import { familyColour } from "../../profiled/family_colours";
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

const NUMBERS = {
  calls: "numCalls",
  host_self: "hostSelfMs",
  host_total: "hostTotalMs",
  device_self: "deviceSelfMs",
  device_total: "deviceTotalMs",
  tensor: "tensorCoreSelfShare",
  tensor_total: "tensorCoreTotalShare",
} as const;

type NumberKey = keyof typeof NUMBERS;

export const TIME_KEYS: readonly string[] = ["name", "shapes", ...Object.keys(NUMBERS)];

const HELP = {
  name: "The operator as PyTorch names it; of autograd, what evaluates it",
  shapes: "Shapes of its inputs as the profiler wrote them; – where it wrote none",
  calls:
    "How often it was called while the profiler ran. An operator that only calls one of its own name counts once.",
  host_self:
    "Time on the host in the operator itself: its duration less that of the operators and runtime calls in it. The profiler's own cost is part of it: above all of operators of a few µs.",
  host_total:
    "Sum of its calls’ durations on the host, the operators in it included. Calls on several threads count each, and waiting for the device counts as time of the host.",
  device_self:
    "Sum of the durations of the kernels, copies and fills that it launched itself. Those that ran at the same time count each.",
  device_total:
    "Device self, and that of the operators in it. Launches belong to the innermost operator around them.",
  tensor:
    "Time of its own kernels that use tensor cores ÷ time of its own kernels. Kernels are judged by their names alone.",
  tensor_total: "The same over its kernels and those of the operators in it",
  eligible:
    "Whether its kernels could use tensor cores, with fitting data types and shapes; judged by its name alone",
} as const;

/** The order in which a trace is looked at first. */
export function usualSort(hasDevices: boolean): Sort {
  return { key: hasDevices ? "device_self" : "host_self", descending: true };
}

function isNumberKey(key: string): key is NumberKey {
  return key in NUMBERS;
}

export function timeValues(
  data: OperatorsResponse,
  key: string,
): ArrayLike<number> | readonly string[] | undefined {
  if (key === "name") return data.name;
  if (key === "shapes") return data.shapes;
  return isNumberKey(key) ? data[NUMBERS[key]] : undefined;
}

/** The route's word of a column. */
export function timeSort(key: string): string {
  return isNumberKey(key) ? wireName(NUMBERS[key]) : key;
}

/** A time with a bar of its share of the column's longest, and what it is of the sum. */
function timed(
  values: Float64Array,
  sumMs: number | null,
  colour: string,
): (row: number) => RowCell {
  const longest = longestOf(values);
  return (row) => {
    const ms = values[row] ?? 0;
    const of =
      sumMs !== null && sumMs > 0
        ? `: ${((100 * ms) / sumMs).toFixed(1)} % of all operators`
        : "";
    const cell = durationCell(ms);
    return {
      ...cell,
      title: `${cell.title ?? ""}${of}`,
      bar: barOf(ms, longest, colour),
    };
  };
}

function shared(values: Float64Array): (row: number) => RowCell {
  return (row) => {
    const value = values[row] ?? NaN;
    if (Number.isNaN(value)) return absentCell("It launched no kernels");
    return { text: `${(100 * value).toFixed(0)} %`, title: `${100 * value} %` };
  };
}

export function timeColumns(
  data: OperatorsResponse,
  theme: Theme,
): readonly RowColumn[] {
  const number = (
    key: keyof typeof HELP & NumberKey,
    title: string,
    width: string,
    cell: (row: number) => RowCell,
  ): RowColumn => numberColumn(key, title, width, cell, HELP[key]);
  const host = partColour(theme, "forward");
  const device = familyColour(theme, "kernel");
  const { totals, numCalls } = data;
  const onDevice: readonly RowColumn[] = [
    number(
      "device_self",
      "Device self",
      "104px",
      timed(data.deviceSelfMs, totals.deviceSelfMs, device),
    ),
    number(
      "device_total",
      "Device total",
      "104px",
      timed(data.deviceTotalMs, null, device),
    ),
    {
      key: "eligible",
      title: "TC eligible",
      hint: HELP.eligible,
      numeric: false,
      width: "80px",
      cell: (row) => ({ text: data.isEligible[row] === 1 ? "yes" : "no" }),
    },
    number("tensor", "TC self", "72px", shared(data.tensorCoreSelfShare)),
    number("tensor_total", "TC total", "72px", shared(data.tensorCoreTotalShare)),
  ];
  return [
    textColumn("name", "Operator", "minmax(180px, 1fr)", data.name, HELP.name),
    ...(data.by === "shapes"
      ? [
          textColumn(
            "shapes",
            "Input shapes",
            "minmax(200px, 1fr)",
            (row) => {
              const text = data.shapes[row] ?? "";
              return text === ""
                ? absentCell("The profiler wrote no shapes")
                : { text };
            },
            HELP.shapes,
          ),
        ]
      : []),
    number("calls", "Calls", "72px", (row) => countCell(numCalls[row] ?? 0)),
    number(
      "host_self",
      "Host self",
      "104px",
      timed(data.hostSelfMs, totals.hostSelfMs, host),
    ),
    number("host_total", "Host total", "104px", timed(data.hostTotalMs, null, host)),
    ...(data.hasDevices ? onDevice : []),
  ];
}

export function timeTable(data: OperatorsResponse): Table {
  return {
    numRows: data.name.length,
    columns: [
      { name: "operator", values: data.name },
      { name: "shapes", values: data.shapes },
      { name: "calls", values: data.numCalls },
      { name: "host_self_ms", values: data.hostSelfMs },
      { name: "host_total_ms", values: data.hostTotalMs },
      { name: "device_self_ms", values: data.deviceSelfMs },
      { name: "device_total_ms", values: data.deviceTotalMs },
      { name: "is_tensor_core_eligible", values: data.isEligible },
      { name: "tensor_core_self_share", values: data.tensorCoreSelfShare },
      { name: "tensor_core_total_share", values: data.tensorCoreTotalShare },
    ],
  };
}
