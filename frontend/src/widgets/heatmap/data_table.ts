/** The heatmap's cells as tables. */

import type { HeatmapResponse, Unit } from "../../api/types.gen";
import type { Table, TableColumn } from "../../model/table";
import { cellValue } from "../../render/palette";

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
