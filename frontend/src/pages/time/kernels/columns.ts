/** The columns of the table of kernels. Pure. */

import type { KernelsResponse } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import type { Sort } from "../../../model/shown_rows";
import type { Table } from "../../../model/table";
import { familyColour } from "../profiled/family_colours";
import { nameCells } from "../profiled/kernel_name";
import {
  absentCell,
  barOf,
  countCell,
  durationCell,
  longestOf,
  numberColumn,
  tableOf,
  textColumn,
  yesColumn,
} from "../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../widgets/row_table/row_table";

export const USUAL: Sort = { key: "total_ms", descending: true };

/** What the route sorts by. */
export const BY_KERNEL = [
  ...["name", "num_calls", "total_ms", "mean_us", "min_us", "max_us"],
  ...["blocks_per_sm", "occupancy"],
] as const;
/** The same where rows are launches. */
export const BY_LAUNCH = [
  ...BY_KERNEL,
  ...["operator", "registers", "shared_memory_bytes"],
] as const;

const HELP = {
  name: "The kernel as the profiler names it; pointed at, with its template arguments",
  operator: "The innermost operator around the launch, by the launch's correlation id",
  grid: "Blocks of a launch, in x, y and z",
  block: "Threads of a block, in x, y and z",
  registers: "Registers of a thread. Many leave room for fewer warps on an SM.",
  shared_memory_bytes:
    "Bytes of shared memory of a block, static and dynamic. Much leaves room for fewer blocks on an SM.",
  num_calls: "How often it ran while the profiler did",
  total_ms:
    "Sum of the durations of its runs. Kernels that run at the same time on several streams count each, so it may exceed the time that passed.",
  mean_us: "Total ÷ calls",
  min_us: "The shortest run",
  max_us: "The longest run; far above the mean, something was in its way at times",
  blocks_per_sm:
    "Blocks of a launch ÷ the device’s SMs, mean of the runs weighted by their time. Below 1 some SMs have nothing to do: 64 blocks on 80 SMs are 0.8.",
  occupancy:
    "Est. achieved occupancy: active warps of an SM ÷ those it could have, mean of the runs weighted by their time. The profiler estimates it from the launch configuration, it is not measured; 15 to 30 % may be as good as it gets.",
  uses_tensor_cores:
    "Whether it uses tensor cores, judged by its name alone (Volta to Blackwell): a kernel with another name counts as not using them",
} as const;

function fraction(value: number, digits: number): RowCell {
  if (Number.isNaN(value)) return absentCell("The trace does not say it");
  return { text: value.toFixed(digits), title: String(value) };
}

/** A resource of a launch: -1 stands for what the trace does not say. */
function resource(
  key: "registers" | "shared_memory_bytes",
  title: string,
  width: string,
  sent: ArrayLike<number>,
): RowColumn {
  const values = Float64Array.from(sent, (one) => (one < 0 ? NaN : one));
  const cell = (value: number): RowCell =>
    Number.isNaN(value) ? absentCell("The trace does not say it") : countCell(value);
  return numberColumn(key, title, width, values, cell, HELP[key]);
}

/** What tells launches of one kernel apart: its operator and shape, and what each costs. */
function launchColumns({
  operator,
  grid,
  block,
}: KernelsResponse): readonly RowColumn[] {
  const shape = (
    key: "grid" | "block",
    title: string,
    width: string,
    of: readonly string[],
  ) => ({ ...textColumn(key, title, width, of, HELP[key]), sortable: false });
  return [
    textColumn("operator", "Operator", "180px", operator, HELP.operator),
    shape("grid", "Grid", "104px", grid),
    shape("block", "Block", "96px", block),
  ];
}

export function kernelColumns(
  data: KernelsResponse,
  theme: Theme,
): readonly RowColumn[] {
  const longest = longestOf(data.totalMs);
  const colour = (row: number): string =>
    familyColour(theme, data.isCommunication[row] === 1 ? "communication" : "kernel");
  const timed = (
    key: "mean_us" | "min_us" | "max_us",
    title: string,
    us: Float64Array,
  ) =>
    numberColumn(key, title, "84px", us, (one) => durationCell(one / 1e3), HELP[key]);
  const total = (ms: number, row: number): RowCell => {
    const of = data.totalAllMs > 0 ? (100 * ms) / data.totalAllMs : 0;
    const cell = durationCell(ms);
    return {
      ...cell,
      title: `${cell.title ?? ""}: ${of.toFixed(1)} % of all kernels’ time`,
      bar: barOf(ms, longest, colour(row)),
    };
  };
  const percent = (value: number): RowCell => {
    const cell = fraction(value * 100, 0);
    return Number.isNaN(value) ? cell : { ...cell, text: `${cell.text} %` };
  };
  const kernel = nameCells(data.name);
  const blocks = (value: number): RowCell => fraction(value, 2);
  const apart = data.by === "properties";
  return [
    textColumn("name", "Kernel", "minmax(240px, 1fr)", data.name, HELP.name, kernel),
    ...(apart ? launchColumns(data) : []),
    numberColumn(
      "num_calls",
      "Calls",
      "80px",
      data.numCalls,
      countCell,
      HELP.num_calls,
    ),
    numberColumn("total_ms", "Total", "120px", data.totalMs, total, HELP.total_ms),
    timed("mean_us", "Mean", data.meanUs),
    timed("min_us", "Min", data.minUs),
    timed("max_us", "Max", data.maxUs),
    numberColumn(
      "blocks_per_sm",
      "Blocks/SM",
      "88px",
      data.blocksPerSm,
      blocks,
      HELP.blocks_per_sm,
    ),
    numberColumn(
      "occupancy",
      "Occupancy",
      "92px",
      data.occupancy,
      percent,
      HELP.occupancy,
    ),
    yesColumn(
      "uses_tensor_cores",
      "TC",
      "44px",
      data.usesTensorCores,
      HELP.uses_tensor_cores,
    ),
    ...(apart
      ? [
          resource("registers", "Registers", "80px", data.registers),
          resource("shared_memory_bytes", "Shared B", "84px", data.sharedMemoryBytes),
        ]
      : []),
  ];
}

export function kernelsTable(data: KernelsResponse, theme: Theme): Table {
  const all = tableOf(kernelColumns(data, theme), [...data.name.keys()]);
  const more = { name: "is_communication", values: data.isCommunication };
  return { ...all, columns: [...all.columns, more] };
}
