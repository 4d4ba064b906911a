import type { HeatmapResponse, Unit } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import { highestColumn } from "../../model/lines/peaks";
import type { Table } from "../../model/table";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { cellValue } from "../../render/palette";
import type { CellFacts } from "./layout";
import type { Reading } from "../plot/reader";

/** Of several ranks: the highest value, or the farthest from the median rank. */
export type Pooling = "farthest" | "highest";

/** Steps of a quantised cell. */
const CELL_STEPS = 65_534;
const MOST_DIGITS = 9;

export function cellReading(
  { firstRank, lastRank, firstStep, lastStep, value, tolerance }: CellFacts,
  of: {
    readonly unit: Unit;
    readonly byteUnit: ByteUnit;
    readonly capacityBytes: number | null;
    readonly diverging: boolean;
    readonly pooled: Pooling;
  },
): Reading {
  const { unit, capacityBytes, diverging, pooled } = of;
  const among = pooled === "farthest" ? "farthest from the median rank" : pooled;
  const where = [
    firstRank === lastRank
      ? `rank ${firstRank}`
      : `${among} of ranks ${firstRank}–${lastRank}`,
    firstStep === lastStep
      ? `step ${formatInteger(firstStep)}`
      : `highest of steps ${formatInteger(firstStep)}–${formatInteger(lastStep)}`,
  ];
  if (!Number.isFinite(value)) return { title: "not recorded", notes: where };
  const sign = diverging && value > 0 ? "+" : "";
  const share = (value / (capacityBytes ?? NaN)) * 100;
  // Bytes and counts are whole: fractions come from quantising.
  const isWhole = unit === "bytes" || unit === "count";
  const exact = formatExact(isWhole ? Math.round(value) : value, unit);
  const digits = `${exact} ± ${formatQuantity(tolerance, unit)}`;
  return {
    title: `${sign}${formatQuantity(value, unit, of.byteUnit)}`,
    notes: [
      ...(Number.isFinite(share)
        ? [`${share.toFixed(1).replace("-", "−")} % of the capacity`]
        : []),
      // Differences from the usual need no digits.
      ...(diverging ? [] : [{ text: digits, class: "quiet" } as const]),
      ...where,
    ],
  };
}

/** To the digits that quantising leaves; NaN: not recorded. */
function valueOf({ valueLow, valueHigh }: HeatmapResponse, cell: number): number {
  const value = cellValue(cell, valueLow, valueHigh);
  const digits = Math.ceil(-Math.log10((valueHigh - valueLow) / CELL_STEPS));
  return Number(value.toFixed(Math.min(Math.max(digits, 0), MOST_DIGITS)));
}

/** The first whole step of a column. */
function stepOf({ x0, stepsPerColumn }: HeatmapResponse, column: number): number {
  return Math.ceil(x0 + column * stepsPerColumn);
}

/** A row per row of ranks, a column per column of steps. */
export function cellTable(answer: HeatmapResponse): Table {
  const { numRows, numColumns, values } = answer;
  const columns = Array.from({ length: numColumns }, (_, column) => ({
    name: `step ${stepOf(answer, column)}`,
    values: Float64Array.from({ length: numRows }, (__, row) =>
      valueOf(answer, values[row * numColumns + column] ?? 0),
    ),
  }));
  const ranks = { name: "first rank", values: Float64Array.from(answer.rowRank) };
  return { columns: [ranks, ...columns], numRows };
}

/** A row per row of ranks. */
export function summaryTable(answer: HeatmapResponse, unit: Unit): Table {
  const { numRows, numColumns, values } = answer;
  const rows = Array.from({ length: numRows }, (_, row) => {
    const cells = values.subarray(row * numColumns, (row + 1) * numColumns);
    const peakColumn = highestColumn(cells);
    const highest = cells[peakColumn] ?? 0;
    return {
      highest: valueOf(answer, highest),
      step: highest > 0 ? stepOf(answer, peakColumn) : NaN,
      newest: valueOf(answer, cells.findLast((cell) => cell > 0) ?? 0),
    };
  });
  const column = (name: string, of: (row: (typeof rows)[number]) => number) => ({
    name,
    values: Float64Array.from(rows, of),
  });
  return {
    numRows,
    columns: [
      { name: "first rank", values: Float64Array.from(answer.rowRank) },
      column(`highest (${unit})`, ({ highest }) => highest),
      column("from step", ({ step }) => step),
      column(`newest (${unit})`, ({ newest }) => newest),
    ],
  };
}
