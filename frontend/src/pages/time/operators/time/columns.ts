/** The columns of the table of operators by time. Pure. */

import type { OperatorsResponse } from "../../../../api/types.gen";
import type { Theme } from "../../../../base/tokens";
import type { Sort } from "../../../../model/shown_rows";
import type { Table } from "../../../../model/table";
import { familyColour } from "../../profiled/family_colours";
import { partColour } from "../../../../render/palette";
import {
  absentCell,
  barOf,
  countCell,
  durationCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../../widgets/row_table/row_table";

/** The route's words of the columns that it sorts by. */
export const TIME_WORDS: ReadonlyMap<string, string> = new Map([
  ["name", "name"],
  ["calls", "num_calls"],
  ["host_self", "host_self_ms"],
  ["host_total", "host_total_ms"],
  ["device_self", "device_self_ms"],
  ["device_total", "device_total_ms"],
  ["tensor", "tensor_core_self_share"],
  ["tensor_total", "tensor_core_total_share"],
]);
/** The same where rows are operators and shapes. */
export const SHAPES_WORDS: ReadonlyMap<string, string> = new Map([
  ...TIME_WORDS,
  ["shapes", "shapes"],
]);

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

/** A time with a bar of its share of the column's longest, and what it is of the sum. */
function timed(
  key: keyof typeof HELP,
  title: string,
  values: Float64Array,
  colour: string,
  sumMs = 0,
): RowColumn {
  const longest = longestOf(values);
  const cell = (ms: number): RowCell => {
    const of =
      sumMs > 0 ? `: ${((100 * ms) / sumMs).toFixed(1)} % of all operators` : "";
    const time = durationCell(ms);
    return {
      ...time,
      title: `${time.title ?? ""}${of}`,
      bar: barOf(ms, longest, colour),
    };
  };
  return numberColumn(key, title, "104px", values, cell, HELP[key]);
}

function shared(
  key: keyof typeof HELP,
  title: string,
  values: Float64Array,
): RowColumn {
  const cell = (value: number): RowCell =>
    Number.isNaN(value)
      ? absentCell("It launched no kernels")
      : { text: `${(100 * value).toFixed(0)} %`, title: `${100 * value} %` };
  return numberColumn(key, title, "72px", values, cell, HELP[key]);
}

export function timeColumns(
  data: OperatorsResponse,
  theme: Theme,
): readonly RowColumn[] {
  const host = partColour(theme, "forward");
  const device = familyColour(theme, "kernel");
  const { totals } = data;
  const onDevice: readonly RowColumn[] = [
    timed("device_self", "Device self", data.deviceSelfMs, device, totals.deviceSelfMs),
    timed("device_total", "Device total", data.deviceTotalMs, device),
    {
      key: "eligible",
      title: "TC eligible",
      hint: HELP.eligible,
      numeric: false,
      width: "80px",
      cell: (row) => ({ text: data.isEligible[row] === 1 ? "yes" : "no" }),
    },
    shared("tensor", "TC self", data.tensorCoreSelfShare),
    shared("tensor_total", "TC total", data.tensorCoreTotalShare),
  ];
  const wide = "minmax(200px, 1fr)";
  const shapes = (text: string): RowCell =>
    text === "" ? absentCell("The profiler wrote no shapes") : { text };
  return [
    textColumn("name", "Operator", "minmax(180px, 1fr)", data.name, HELP.name),
    ...(data.by === "shapes"
      ? [textColumn("shapes", "Input shapes", wide, data.shapes, HELP.shapes, shapes)]
      : []),
    numberColumn("calls", "Calls", "72px", data.numCalls, countCell, HELP.calls),
    timed("host_self", "Host self", data.hostSelfMs, host, totals.hostSelfMs),
    timed("host_total", "Host total", data.hostTotalMs, host),
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
