/** The columns of the table of kernels. Pure. */

import type { KernelsResponse } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import type { Sort } from "../../../model/shown_rows";
import type { Table } from "../../../model/table";
import { familyColour } from "../profiled/family_colours";
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

export const USUAL: Sort = { key: "total", descending: true };

/** The route's words of the columns that it sorts by. */
export const ROUTE_WORDS: ReadonlyMap<string, string> = new Map([
  ["name", "name"],
  ["calls", "num_calls"],
  ["total", "total_ms"],
  ["mean", "mean_us"],
  ["min", "min_us"],
  ["max", "max_us"],
  ["blocks", "blocks_per_sm"],
  ["occupancy", "occupancy"],
]);
/** The same where rows are launches. */
export const LAUNCH_WORDS: ReadonlyMap<string, string> = new Map([
  ...ROUTE_WORDS,
  ["operator", "operator"],
  ["registers", "registers"],
  ["shared", "shared_memory_bytes"],
]);

const HELP = {
  name: "The kernel as the profiler names it; pointed at, with its template arguments",
  operator: "The innermost operator around the launch, by the launch's correlation id",
  grid: "Blocks of a launch, in x, y and z",
  block: "Threads of a block, in x, y and z",
  registers: "Registers of a thread. Many leave room for fewer warps on an SM.",
  shared:
    "Bytes of shared memory of a block, static and dynamic. Much leaves room for fewer blocks on an SM.",
  calls: "How often it ran while the profiler did",
  total:
    "Sum of the durations of its runs. Kernels that run at the same time on several streams count each, so it may exceed the time that passed.",
  mean: "Total ÷ calls",
  min: "The shortest run",
  max: "The longest run; far above the mean, something was in its way at times",
  blocks:
    "Blocks of a launch ÷ the device’s SMs, mean of the runs weighted by their time. Below 1 some SMs have nothing to do: 64 blocks on 80 SMs are 0.8.",
  occupancy:
    "Est. achieved occupancy: active warps of an SM ÷ those it could have, mean of the runs weighted by their time. The profiler reckons it from the launch, it is not measured; 15 to 30 % may be as good as it gets.",
  tensor:
    "Whether it uses tensor cores, judged by its name alone (Volta to Blackwell): a kernel with another name counts as not using them",
} as const;

function fraction(value: number, digits: number): RowCell {
  if (Number.isNaN(value)) return absentCell("The trace does not say it");
  return { text: value.toFixed(digits), title: String(value) };
}

/** A resource of a launch: -1 stands for what the trace does not say. */
function resource(
  key: "registers" | "shared",
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
  ) => ({
    ...{ key, title, width, hint: HELP[key], numeric: false },
    cell: (row: number) => ({ text: of[row] ?? "" }),
  });
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
  const timed = (key: "mean" | "min" | "max", title: string, us: Float64Array) =>
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
  // Of a C++ template what it returns says nothing.
  const kernel = (name: string): RowCell => ({
    text: name.replace(/^void /, ""),
    title: name,
  });
  const blocks = (value: number): RowCell => fraction(value, 2);
  const apart = data.by === "properties";
  return [
    textColumn("name", "Kernel", "minmax(240px, 1fr)", data.name, HELP.name, kernel),
    ...(apart ? launchColumns(data) : []),
    numberColumn("calls", "Calls", "80px", data.numCalls, countCell, HELP.calls),
    numberColumn("total", "Total", "120px", data.totalMs, total, HELP.total),
    timed("mean", "Mean", data.meanUs),
    timed("min", "Min", data.minUs),
    timed("max", "Max", data.maxUs),
    numberColumn("blocks", "Blocks/SM", "88px", data.blocksPerSm, blocks, HELP.blocks),
    numberColumn(
      "occupancy",
      "Occupancy",
      "92px",
      data.occupancy,
      percent,
      HELP.occupancy,
    ),
    {
      key: "tensor",
      title: "TC",
      hint: HELP.tensor,
      numeric: false,
      width: "44px",
      cell: (row) => ({ text: data.usesTensorCores[row] === 1 ? "yes" : "no" }),
    },
    ...(apart
      ? [
          resource("registers", "Registers", "80px", data.registers),
          resource("shared", "Shared B", "84px", data.sharedMemoryBytes),
        ]
      : []),
  ];
}

export function kernelsTable(data: KernelsResponse): Table {
  return {
    numRows: data.name.length,
    columns: [
      { name: "kernel", values: data.name },
      { name: "operator", values: data.operator },
      { name: "grid", values: data.grid },
      { name: "block", values: data.block },
      { name: "registers", values: data.registers },
      { name: "shared_memory_bytes", values: data.sharedMemoryBytes },
      { name: "calls", values: data.numCalls },
      { name: "total_ms", values: data.totalMs },
      { name: "mean_us", values: data.meanUs },
      { name: "min_us", values: data.minUs },
      { name: "max_us", values: data.maxUs },
      { name: "blocks_per_sm", values: data.blocksPerSm },
      { name: "occupancy", values: data.occupancy },
      { name: "uses_tensor_cores", values: data.usesTensorCores },
      { name: "is_communication", values: data.isCommunication },
    ],
  };
}
