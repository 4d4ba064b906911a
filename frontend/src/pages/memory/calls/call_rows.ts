/** The collected calls of a function as rows and columns. Pure. */

import type {
  FunctionKind,
  FunctionsResponse,
  FunctionStat,
} from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import { formatInstant, formatSeconds } from "../../../base/durations";
import type { Theme } from "../../../base/tokens";
import { divergingColours } from "../../../model/category";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { formatSigned, formatSignedExact } from "../../../model/words/signed";
import type { Table, TableColumn } from "../../../model/table";
import { orderBy, type TreeRow } from "../../../model/tree";
import type { Cell, CellBar, TreeColumn } from "../../../widgets/tree_table/types";
import type { FunctionsParams, Side } from "./params";
import { statLabel } from "./stats";

const KIND_BITS: readonly (readonly [number, FunctionKind])[] = [
  [1, "snaps"],
  [2, "hooks"],
  [4, "activations"],
  [8, "modules"],
  [16, "history"],
];

/** What was collected around a call, from its bits. */
export function kindsOf(bits: number): readonly FunctionKind[] {
  return KIND_BITS.flatMap(([bit, kind]) => ((bits & bit) === 0 ? [] : [kind]));
}

const SIDE_WORDS: Readonly<Record<Side, string>> = {
  start: "start",
  end: "end",
  difference: "Δ",
};

function valuesOf(stat: FunctionStat, side: Side): Float64Array {
  return stat[side];
}

function columnKey(stat: FunctionStat, side: Side): string {
  return `${stat.name}:${side}`;
}

/** How long each call took; NaN where a side is missing. */
function callSeconds({ calls }: FunctionsResponse): Float64Array {
  return Float64Array.from(
    calls.startMs,
    (start, i) => ((calls.endMs[i] ?? NaN) - start) / 1000,
  );
}

/** Rows are calls, in the order asked for; without one the newest stands first. */
export function callRows(
  data: FunctionsResponse,
  params: FunctionsParams,
  stats: readonly FunctionStat[],
): readonly TreeRow[] {
  const ids = Array.from(data.calls.iteration.keys()).reverse();
  const values = sortValues(data, params.sort, stats);
  if (values !== null) ids.sort(orderBy(values, params.descending));
  return ids.map((id) => ({ id, depth: 0, numChildren: 0, expanded: false }));
}

function sortValues(
  data: FunctionsResponse,
  key: string,
  stats: readonly FunctionStat[],
): ArrayLike<number> | null {
  if (key === "call") return data.calls.iteration;
  if (key === "step") return data.calls.step;
  if (key === "took") return callSeconds(data);
  const at = key.lastIndexOf(":");
  const stat = stats.find(({ name }) => name === key.slice(0, at));
  const side = key.slice(at + 1);
  if (side !== "start" && side !== "end" && side !== "difference") return null;
  return stat === undefined ? null : valuesOf(stat, side);
}

/** The row that the lower part of the page is about; null where there is none. */
export function selectedCall(data: FunctionsResponse): number | null {
  const at = data.calls.iteration.findIndex(
    (iteration, i) =>
      iteration === data.iteration && data.calls.attempt[i] === data.attempt,
  );
  return at < 0 ? null : at;
}

export interface CallColumns {
  readonly data: FunctionsResponse;
  readonly stats: readonly FunctionStat[];
  readonly sides: readonly Side[];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

export function callColumns(input: CallColumns): readonly TreeColumn[] {
  const { data, stats, sides } = input;
  return [
    ...placeColumns(data),
    ...(new Set(data.calls.kinds).size > 1 ? [kindsColumn(data)] : []),
    ...stats.flatMap((stat) => sides.map((side) => statColumn(input, stat, side))),
  ];
}

const CHARACTER_PX = 7;
const CELL_PADDING_PX = 24;

/** Before the statistics, of which there may be more than fit, and as wide as its words. */
function kindsColumn({ calls }: FunctionsResponse): TreeColumn {
  const words = (bits: number): string =>
    kindsOf(bits)
      .filter((kind) => kind !== "snaps")
      .join(", ");
  const title = "Collected";
  const longest = Math.max(
    title.length + 2,
    ...[...new Set(calls.kinds)].map((bits) => words(bits).length),
  );
  return {
    key: "kinds",
    title,
    hint: "What was collected around the call, besides the numbers here",
    numeric: false,
    sortable: false,
    minWidthPx: longest * CHARACTER_PX + CELL_PADDING_PX,
    cell: (id) => {
      const text = words(calls.kinds[id] ?? 0);
      return { text: text || "–", title: text || "nothing else", tone: "quiet" };
    },
  };
}

function placeColumns(data: FunctionsResponse): readonly TreeColumn[] {
  const { calls } = data;
  const attempts = new Set(calls.attempt).size;
  const seconds = callSeconds(data);
  const count = (value: number | undefined): Cell =>
    value !== undefined && Number.isFinite(value)
      ? { text: formatInteger(value) }
      : { text: "–", title: "not recorded", tone: "quiet" };
  const columns: readonly (TreeColumn & { readonly from?: Float64Array })[] = [
    {
      key: "call",
      title: "Iteration",
      hint: "A click on a row shows what was collected in that call",
      numeric: false,
      minWidthPx: attempts > 1 ? 180 : 110,
      isTree: true,
      cell: (id) => ({
        text: formatInteger(calls.iteration[id] ?? 0),
        title: `began ${formatInstant(calls.startMs[id] ?? NaN) || "–"}`,
        ...(attempts > 1 ? { note: `attempt ${calls.attempt[id] ?? 0}` } : {}),
      }),
    },
    {
      key: "step",
      from: calls.step,
      title: "Step",
      numeric: true,
      minWidthPx: 72,
      cell: (id) => count(calls.step[id]),
    },
    {
      key: "took",
      from: seconds,
      title: "Took",
      hint: "From the snap of the start to that of the end",
      numeric: true,
      minWidthPx: 84,
      cell: (id) => {
        const value = seconds[id] ?? NaN;
        if (Number.isFinite(value)) return { text: formatSeconds(value) };
        return { text: "–", title: missingSide(data, id), tone: "quiet" };
      },
    },
  ];
  // Imported files know neither steps nor times: such a column would be all dashes.
  return columns.filter(
    ({ from }) => from === undefined || from.some((value) => Number.isFinite(value)),
  );
}

function missingSide({ calls }: FunctionsResponse, id: number): string {
  return Number.isFinite(calls.endMs[id] ?? NaN)
    ? "There is no snap of the start"
    : "There is no snap of the end: the process died inside the call, or is still in it";
}

/** Hooks leave their values at the end only: not every number has two sides. */
function missingValue(data: FunctionsResponse, side: Side, id: number): string {
  const { startMs, endMs } = data.calls;
  const has = (times: Float64Array): boolean => Number.isFinite(times[id] ?? NaN);
  const there = (side === "end" || has(startMs)) && (side === "start" || has(endMs));
  return there ? "not recorded on this side of the call" : missingSide(data, id);
}

/** The largest size in a column: its bars are shares of it. */
function largest(values: Float64Array): number {
  let most = 0;
  for (const value of values) if (Math.abs(value) > most) most = Math.abs(value);
  return most;
}

function statColumn(input: CallColumns, stat: FunctionStat, side: Side): TreeColumn {
  const { data, theme, byteUnit } = input;
  const { unit } = stat;
  const values = valuesOf(stat, side);
  const scale = side === "difference" ? largest(values) : 0;
  const [less, more] = divergingColours(theme);
  const title = `${statLabel(stat.name)} ${SIDE_WORDS[side]}`;
  return {
    key: columnKey(stat, side),
    title,
    hint: `${stat.name}, ${side === "difference" ? "end less start" : `at the ${side}`}`,
    numeric: true,
    minWidthPx: Math.max(92, title.length * 7 + 32),
    cell: (id) => {
      const value = values[id] ?? NaN;
      if (!Number.isFinite(value)) {
        return { text: "–", title: missingValue(data, side, id), tone: "quiet" };
      }
      if (side !== "difference") {
        return {
          text: formatQuantity(value, unit, byteUnit),
          title: formatExact(value, unit),
        };
      }
      const share = scale > 0 ? value / scale / 2 : 0;
      const bar: CellBar =
        share < 0
          ? { from: 0.5 + share, to: 0.5, colour: less }
          : { from: 0.5, to: 0.5 + share, colour: more };
      return {
        text: formatSigned(value, unit, byteUnit),
        title: formatSignedExact(value, unit),
        bar,
        ...(value === 0 ? { tone: "quiet" as const } : {}),
      };
    },
  };
}

/** Every call, with every digit of the statistics shown. */
export function callsTable(
  data: FunctionsResponse,
  stats: readonly FunctionStat[],
): Table {
  const { calls } = data;
  const columns: TableColumn[] = [
    {
      name: "function",
      values: Array.from(calls.iteration, () => data.function ?? ""),
    },
    { name: "phase", values: Array.from(calls.iteration, () => data.phase) },
    { name: "attempt", values: calls.attempt },
    { name: "iteration", values: calls.iteration },
    { name: "step", values: calls.step },
    { name: "start_ms", values: calls.startMs },
    { name: "end_ms", values: calls.endMs },
    {
      name: "collected",
      values: Array.from(calls.kinds, (bits) => kindsOf(bits).join(" ")),
    },
  ];
  for (const stat of stats) {
    for (const side of ["start", "end", "difference"] as const) {
      columns.push({ name: `${stat.name} ${side}`, values: valuesOf(stat, side) });
    }
  }
  return { numRows: calls.iteration.length, columns };
}
