/** The columns of the table of kernels. Pure. */

import { wireName } from "../../api/decode";
import type { KernelsResponse } from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import type { Sort } from "../../model/shown_rows";
import type { Table } from "../../model/table";
import { familyColour } from "../profiled/family_colours";
import {
  absentCell,
  barOf,
  countCell,
  durationCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../widgets/row_table/row_table";

export const USUAL: Sort = { key: "total", descending: true };

const NUMBERS = {
  calls: "numCalls",
  total: "totalMs",
  mean: "meanUs",
  min: "minUs",
  max: "maxUs",
  blocks: "blocksPerSm",
  occupancy: "occupancy",
  registers: "registers",
  shared: "sharedMemoryBytes",
} as const;

export const KEYS: readonly string[] = ["name", "operator", ...Object.keys(NUMBERS)];

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

function isNumberKey(key: string): key is keyof typeof NUMBERS {
  return key in NUMBERS;
}

export function kernelValues(
  data: KernelsResponse,
  key: string,
): ArrayLike<number> | readonly string[] | undefined {
  if (key === "name") return data.name;
  if (key === "operator") return data.operator;
  if (!isNumberKey(key)) return undefined;
  const values = data[NUMBERS[key]];
  // -1 stands for what the trace does not say.
  return key === "registers" || key === "shared"
    ? Float64Array.from(values, (one) => (one < 0 ? NaN : one))
    : values;
}

/** The route's word of a column. */
export function kernelSort(key: string): string {
  return isNumberKey(key) ? wireName(NUMBERS[key]) : key;
}

function fraction(value: number, digits: number): RowCell {
  if (Number.isNaN(value)) return absentCell("The trace does not say it");
  return { text: value.toFixed(digits), title: String(value) };
}

function known(value: number | undefined): RowCell {
  if (value === undefined || value < 0) return absentCell("The trace does not say it");
  return countCell(value);
}

/** What tells launches of one kernel apart: its operator and shape, and what each costs. */
function launchColumns(data: KernelsResponse): readonly RowColumn[] {
  return [
    textColumn("operator", "Operator", "180px", data.operator, HELP.operator),
    { ...textColumn("grid", "Grid", "104px", data.grid, HELP.grid), sortable: false },
    {
      ...textColumn("block", "Block", "96px", data.block, HELP.block),
      sortable: false,
    },
  ];
}

function resourceColumns({
  registers,
  sharedMemoryBytes,
}: KernelsResponse): readonly RowColumn[] {
  return [
    numberColumn(
      "registers",
      "Registers",
      "80px",
      (row) => known(registers[row]),
      HELP.registers,
    ),
    numberColumn(
      "shared",
      "Shared B",
      "84px",
      (row) => known(sharedMemoryBytes[row]),
      HELP.shared,
    ),
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
    key: "mean" | "min" | "max",
    title: string,
    us: Float64Array,
  ): RowColumn =>
    numberColumn(
      key,
      title,
      "84px",
      (row) => durationCell((us[row] ?? 0) / 1e3),
      HELP[key],
    );
  const apart = data.by === "properties";
  return [
    textColumn(
      "name",
      "Kernel",
      "minmax(240px, 1fr)",
      (row) => {
        const name = data.name[row] ?? "";
        // Of a C++ template what it returns says nothing.
        return { text: name.replace(/^void /, ""), title: name };
      },
      HELP.name,
    ),
    ...(apart ? launchColumns(data) : []),
    numberColumn(
      "calls",
      "Calls",
      "80px",
      (row) => countCell(data.numCalls[row] ?? 0),
      HELP.calls,
    ),
    numberColumn(
      "total",
      "Total",
      "120px",
      (row) => {
        const ms = data.totalMs[row] ?? 0;
        const of = data.totalAllMs > 0 ? (100 * ms) / data.totalAllMs : 0;
        const cell = durationCell(ms);
        return {
          ...cell,
          title: `${cell.title ?? ""}: ${of.toFixed(1)} % of all kernels’ time`,
          bar: barOf(ms, longest, colour(row)),
        };
      },
      HELP.total,
    ),
    timed("mean", "Mean", data.meanUs),
    timed("min", "Min", data.minUs),
    timed("max", "Max", data.maxUs),
    numberColumn(
      "blocks",
      "Blocks/SM",
      "88px",
      (row) => fraction(data.blocksPerSm[row] ?? NaN, 2),
      HELP.blocks,
    ),
    numberColumn(
      "occupancy",
      "Occupancy",
      "92px",
      (row) => {
        const value = data.occupancy[row] ?? NaN;
        const cell = fraction(value * 100, 0);
        return Number.isNaN(value) ? cell : { ...cell, text: `${cell.text} %` };
      },
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
    ...(apart ? resourceColumns(data) : []),
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
