/** The heatmap's cells in words, and as tables. */

import type { HeatmapResponse, Unit } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import type { Table, TableColumn } from "../../model/table";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { cellValue } from "../../render/palette";
import type { Reading } from "../plot/reading";
import type { CellFacts } from "./layout";

/** Of several ranks the one with the highest value, or farthest from the middle rank's. */
export type Pooled = "farthest" | "highest";

const POOLED_WORDS: Readonly<Record<Pooled, string>> = {
  highest: "highest",
  farthest: "farthest from the middle rank",
};

/** Units that have no parts: what lies between is of the cells' own steps. */
const WHOLE: ReadonlySet<Unit> = new Set<Unit>(["bytes", "count"]);

export function cellReading(
  facts: CellFacts,
  of: {
    readonly unit: Unit;
    readonly byteUnit: ByteUnit;
    readonly capacityBytes: number | null;
    readonly diverging: boolean;
    readonly pooled: Pooled;
  },
): Reading {
  const { firstRank, lastRank, firstStep, lastStep, value, tolerance } = facts;
  const { unit, byteUnit, capacityBytes, diverging, pooled } = of;
  const isRecorded = Number.isFinite(value);
  const ranks =
    firstRank === lastRank ? `rank ${firstRank}` : `ranks ${firstRank}–${lastRank}`;
  const among = firstRank === lastRank ? "" : `${POOLED_WORDS[pooled]} of `;
  const steps =
    firstStep === lastStep
      ? `step ${formatInteger(firstStep)}`
      : `highest of steps ${formatInteger(firstStep)}–${formatInteger(lastStep)}`;
  const where = [`${among}${ranks}`, steps];
  if (!isRecorded) return { title: "not recorded", notes: where };
  const sign = diverging && value > 0 ? "+" : "";
  const title = `${sign}${formatQuantity(value, unit, byteUnit)}`;
  const share = (value / (capacityBytes ?? 0)) * 100;
  const exact = formatExact(WHOLE.has(unit) ? Math.round(value) : value, unit);
  return {
    title,
    notes: [
      ...(Number.isFinite(share) ? [`${share.toFixed(1)} % of the capacity`] : []),
      // Beside what is as usual, digits mean nothing.
      ...(diverging
        ? []
        : [
            {
              text: `${exact} ± ${formatQuantity(tolerance, unit)}`,
              class: "quiet",
            } as const,
          ]),
      ...where,
    ],
  };
}

/** Every cell: a row for each row of ranks, a column for each column of steps. */
export function cellTable(answer: HeatmapResponse): Table {
  const { numRows, numColumns, values, valueLow, valueHigh } = answer;
  const columns: TableColumn[] = [
    { name: "first rank", values: Float64Array.from(answer.rowRank) },
  ];
  for (let column = 0; column < numColumns; column += 1) {
    const cells = new Float64Array(numRows);
    for (let row = 0; row < numRows; row += 1) {
      const cell = values[row * numColumns + column] ?? 0;
      cells[row] = Math.round(cellValue(cell, valueLow, valueHigh) * 1000) / 1000;
    }
    const step = answer.x0 + column * answer.stepsPerColumn;
    columns.push({ name: `step ${Math.ceil(step)}`, values: cells });
  }
  return { columns, numRows };
}

/** One line for each row: where it is highest, and how high. */
export function summaryTable(answer: HeatmapResponse, unit: Unit): Table {
  const { numRows, numColumns, values, valueLow, valueHigh } = answer;
  const highest = new Float64Array(numRows);
  const step = new Float64Array(numRows);
  const newest = new Float64Array(numRows);
  for (let row = 0; row < numRows; row += 1) {
    let best = 0;
    let at = NaN;
    let last = 0;
    for (let column = 0; column < numColumns; column += 1) {
      const cell = values[row * numColumns + column] ?? 0;
      if (cell > 0) last = cell;
      if (cell > best) {
        best = cell;
        at = Math.ceil(answer.x0 + column * answer.stepsPerColumn);
      }
    }
    highest[row] = Math.round(cellValue(best, valueLow, valueHigh));
    newest[row] = Math.round(cellValue(last, valueLow, valueHigh));
    step[row] = at;
  }
  return {
    numRows,
    columns: [
      { name: "first rank", values: Float64Array.from(answer.rowRank) },
      { name: `highest (${unit})`, values: highest },
      { name: "from step", values: step },
      { name: `newest (${unit})`, values: newest },
    ],
  };
}
