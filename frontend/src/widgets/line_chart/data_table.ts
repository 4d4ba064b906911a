/** The chart's data as one table: a row for each x in sight, columns for lines and band. */

import type { Unit, XKind } from "../../api/types.gen";
import { X_COLUMN } from "../../model/lines/x_kind";
import { alignTo, mergeX, type Table, type TableColumn } from "../../model/table";
import type { ChartBand, ChartLine, XRange } from "./types";

export function chartTable(
  x: XKind,
  unit: Unit,
  lines: readonly ChartLine[],
  band: ChartBand | null,
  range: XRange,
): Table {
  const columnsOfX = lines.map((line) => line.x);
  if (band !== null) columnsOfX.push(band.x);
  const all = mergeX(columnsOfX);
  // More is fetched than is shown; the table is what is shown.
  const inside = all.every((at) => at >= range.low && at <= range.high);
  const merged = inside ? all : all.filter((at) => at >= range.low && at <= range.high);
  const columns: TableColumn[] = [{ name: X_COLUMN[x], values: merged }];
  const add = (name: string, from: Float64Array, y: Float64Array): void => {
    columns.push({ name: `${name} (${unit})`, values: alignTo(merged, from, y) });
  };
  if (band !== null) {
    add("min", band.x, band.low);
    add("p5", band.x, band.p5);
    add("median", band.x, band.median);
    add("p95", band.x, band.p95);
    add("max", band.x, band.high);
    if (band.highRank.length === band.x.length) {
      const ranks = Float64Array.from(band.highRank);
      columns.push({ name: "rank of max", values: alignTo(merged, band.x, ranks) });
    }
  }
  for (const line of lines) {
    add(line.label, line.x, line.y);
    if (line.yLow !== line.y) add(`${line.label} low`, line.x, line.yLow);
  }
  return { columns, numRows: merged.length };
}
