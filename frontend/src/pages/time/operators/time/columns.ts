/** The columns of the table of operators by time. Pure. */

import type { OperatorsResponse } from "../../../../api/types.gen";
import type { Theme } from "../../../../base/tokens";
import type { Sort } from "../../../../model/shown_rows";
import { familyColour } from "../../profiled/family_colours";
import { nameCells } from "../../profiled/kernel_name";
import { partColour } from "../../../../render/palette";
import {
  absentCell,
  barOf,
  countCell,
  durationCell,
  longestOf,
  numberColumn,
  textColumn,
  yesColumn,
} from "../../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../../widgets/row_table/row_table";

/** What the route sorts by. */
export const BY_NAME = [
  ...["name", "num_calls", "host_self_ms", "host_total_ms", "device_self_ms"],
  ...["device_total_ms", "tensor_core_self_share", "tensor_core_total_share"],
] as const;
/** The same where rows are operators and shapes. */
export const BY_SHAPES = [...BY_NAME, "shapes"] as const;

const HELP = {
  name: "The operator as PyTorch names it; of autograd, what evaluates it",
  shapes: "Shapes of its inputs as the profiler wrote them; – where it wrote none",
  num_calls:
    "How often it was called while the profiler ran. An operator that only calls one of its own name counts once.",
  host_self_ms:
    "Time on the host in the operator itself: its duration less that of the operators and runtime calls in it. The profiler's own cost is part of it: above all of operators of a few µs.",
  host_total_ms:
    "Sum of its calls’ durations on the host, the operators in it included. Calls on several threads count each, and waiting for the device counts as time of the host.",
  device_self_ms:
    "Sum of the durations of the kernels, copies and fills that it launched itself. Those that ran at the same time count each.",
  device_total_ms:
    "Device self, and that of the operators in it. Launches belong to the innermost operator around them.",
  tensor_core_self_share:
    "Time of its own kernels that use tensor cores ÷ time of its own kernels. Kernels are judged by their names alone.",
  tensor_core_total_share: "The same over its kernels and those of the operators in it",
  is_tensor_core_eligible:
    "Whether its kernels could use tensor cores, with fitting data types and shapes; judged by its name alone",
} as const;

/** The order in which a trace is looked at first. */
export function usualSort(hasDevices: boolean): Sort {
  return { key: hasDevices ? "device_self_ms" : "host_self_ms", descending: true };
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
    timed(
      "device_self_ms",
      "Device self",
      data.deviceSelfMs,
      device,
      totals.deviceSelfMs,
    ),
    timed("device_total_ms", "Device total", data.deviceTotalMs, device),
    yesColumn(
      "is_tensor_core_eligible",
      "TC eligible",
      "80px",
      data.isEligible,
      HELP.is_tensor_core_eligible,
    ),
    shared("tensor_core_self_share", "TC self", data.tensorCoreSelfShare),
    shared("tensor_core_total_share", "TC total", data.tensorCoreTotalShare),
  ];
  const named = nameCells(data.name);
  const wide = "minmax(200px, 1fr)";
  const shapes = (text: string): RowCell =>
    text === "" ? absentCell("The profiler wrote no shapes") : { text };
  return [
    textColumn("name", "Operator", "minmax(180px, 1fr)", data.name, HELP.name, named),
    ...(data.by === "shapes"
      ? [textColumn("shapes", "Input shapes", wide, data.shapes, HELP.shapes, shapes)]
      : []),
    numberColumn(
      "num_calls",
      "Calls",
      "72px",
      data.numCalls,
      countCell,
      HELP.num_calls,
    ),
    timed("host_self_ms", "Host self", data.hostSelfMs, host, totals.hostSelfMs),
    timed("host_total_ms", "Host total", data.hostTotalMs, host),
    ...(data.hasDevices ? onDevice : []),
  ];
}
