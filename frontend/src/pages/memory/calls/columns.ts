/** The collected calls of a function: the columns of their table. Pure. */

import type { FunctionsResponse, FunctionStat } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import { formatInstant, formatSeconds } from "../../../base/durations";
import type { Theme } from "../../../base/tokens";
import { divergingColours } from "../../../model/category";
import {
  formatExact,
  formatQuantity,
  formatSigned,
  formatSignedExact,
} from "../../../model/words/quantity";
import type { Table } from "../../../model/table";
import {
  absentCell,
  changeBar,
  longestOf,
  numberColumn,
  tableOf,
  textColumn,
} from "../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../widgets/row_table/row_table";
import { SIDES, type Side } from "./params";

export const NEWEST_FIRST = { key: "call", descending: true };

const SIDE_WORDS: Readonly<Record<Side, string>> = {
  start: "start",
  end: "end",
  difference: "Δ",
};

/** The row that the lower part of the page is about; null where there is none. */
export function selectedCall({
  calls,
  iteration,
  attempt,
}: FunctionsResponse): number | null {
  const at = calls.iteration.findIndex(
    (one, i) => one === iteration && calls.attempt[i] === attempt,
  );
  return at < 0 ? null : at;
}

const LETTER_PX = 7;
const PADDING_PX = 32;

function wideAs(title: string, leastPx: number): string {
  return `minmax(${Math.max(leastPx, title.length * LETTER_PX + PADDING_PX)}px, 1fr)`;
}

function quiet(cell: RowCell): RowCell {
  return { ...cell, tone: "quiet" };
}

interface CallColumns {
  readonly data: FunctionsResponse;
  readonly stats: readonly FunctionStat[];
  readonly sides: readonly Side[];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

export function callColumns(input: CallColumns): readonly RowColumn[] {
  const { data, stats, sides } = input;
  return [
    ...placeColumns(data),
    // Before the statistics, of which there may be more than fit.
    ...(new Set(data.calls.collected).size > 1 ? [collectedColumn(data)] : []),
    ...stats.flatMap((stat) => sides.map((side) => statColumn(input, stat, side))),
  ];
}

function collectedColumn({ calls }: FunctionsResponse): RowColumn {
  const longest = calls.collected.toSorted((a, b) => b.length - a.length)[0] ?? "";
  return textColumn(
    "collected",
    "Collected",
    wideAs(longest, 96),
    calls.collected,
    "What was collected around the call, besides the numbers here",
    (text) => quiet({ text: text || "–", title: text || "nothing else" }),
  );
}

function placeColumns({ calls }: FunctionsResponse): readonly RowColumn[] {
  const attempts = new Set(calls.attempt).size;
  const seconds = calls.startMs.map(
    (start, i) => ((calls.endMs[i] ?? NaN) - start) / 1e3,
  );
  const columns: readonly RowColumn[] = [
    {
      key: "call",
      title: "Iteration",
      hint: "A click on a row shows what was collected in that call",
      numeric: false,
      ascends: false,
      width: `minmax(${attempts > 1 ? 180 : 110}px, 1fr)`,
      // In order of time, over all attempts.
      values: Int32Array.from(calls.iteration.keys()),
      cell: (id) => ({
        text: formatInteger(calls.iteration[id] ?? 0),
        title: `began ${formatInstant(calls.startMs[id] ?? NaN) || "–"}`,
        ...(attempts > 1 && { note: `attempt ${calls.attempt[id] ?? 0}` }),
      }),
    },
    numberColumn("step", "Step", "minmax(72px, 1fr)", calls.step, (step) =>
      Number.isNaN(step)
        ? quiet(absentCell("not recorded"))
        : { text: formatInteger(step) },
    ),
    numberColumn(
      "took",
      "Took",
      "minmax(84px, 1fr)",
      seconds,
      (value, id) =>
        Number.isNaN(value)
          ? quiet(absentCell(missingSide(calls.endMs[id])))
          : { text: formatSeconds(value) },
      "From the snap of the start to that of the end",
    ),
  ];
  // Imported files know neither steps nor times: such a column would be all dashes.
  const isKnown = [
    true,
    calls.step.some(Number.isFinite),
    seconds.some(Number.isFinite),
  ];
  return columns.filter((_, i) => isKnown[i] === true);
}

function missingSide(endMs: number | undefined): string {
  return Number.isFinite(endMs)
    ? "There is no snap of the start"
    : "There is no snap of the end: the process died inside the call, or is still in it";
}

function statColumn(
  { data, theme, byteUnit }: CallColumns,
  stat: FunctionStat,
  side: Side,
): RowColumn {
  const { unit, name, label } = stat;
  const { startMs, endMs } = data.calls;
  const values = stat[side];
  const longest = longestOf(values);
  const title = `${label} ${SIDE_WORDS[side]}`;
  /** Hooks leave their values at the end only: not every number has two sides. */
  const why = (id: number): string => {
    const has = (times: Float64Array): boolean => Number.isFinite(times[id]);
    const there = (side === "end" || has(startMs)) && (side === "start" || has(endMs));
    return there ? "not recorded on this side of the call" : missingSide(endMs[id]);
  };
  return numberColumn(
    `${name}:${side}`,
    title,
    wideAs(title, 92),
    values,
    (value, id) => {
      if (!Number.isFinite(value)) return quiet(absentCell(why(id)));
      if (side !== "difference") {
        const text = formatQuantity(value, unit, byteUnit);
        return { text, title: formatExact(value, unit) };
      }
      const cell = {
        text: formatSigned(value, unit, byteUnit),
        title: formatSignedExact(value, unit),
      };
      if (value === 0) return quiet(cell);
      return { ...cell, bar: changeBar(value, longest, divergingColours(theme)) };
    },
    `${name}, ${side === "difference" ? "end less start" : `at the ${side}`}`,
  );
}

/** Every call, with every digit of the statistics shown. */
export function callsTable(
  data: FunctionsResponse,
  stats: readonly FunctionStat[],
): Table {
  const { calls } = data;
  const rows = [...calls.iteration.keys()];
  const columns = {
    function: rows.map(() => data.function ?? ""),
    phase: rows.map(() => data.phase),
    attempt: calls.attempt,
    iteration: calls.iteration,
    step: calls.step,
    start_ms: calls.startMs,
    end_ms: calls.endMs,
    collected: calls.collected,
    ...Object.fromEntries(
      stats.flatMap((stat) =>
        SIDES.map((side) => [`${stat.name} ${side}`, stat[side]]),
      ),
    ),
  };
  return tableOf(
    Object.entries(columns).map(([key, values]) => ({ key, values })),
    rows,
  );
}
