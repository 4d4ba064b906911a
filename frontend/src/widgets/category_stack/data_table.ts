/** The stacked categories as a table. */

import type { Table } from "../../model/table";
import type { Viewport } from "../../render/viewport";
import type { StackAnswer } from "./types";

/** A row for each column in sight; x is where the column's highest total stands. */
export function stackTable(answer: StackAnswer, view: Viewport): Table {
  const shown = Array.from(answer.totalBytes.keys()).filter((c) => {
    const left = answer.x0 + c * answer.xPerColumn;
    return left < view.x1 && left + answer.xPerColumn > view.x0;
  });
  const pick = (values: Float64Array): Float64Array =>
    Float64Array.from(shown, (c) => values[c] ?? NaN);
  const unit = answer.axis === "time" ? "time_us" : "event";
  return {
    numRows: shown.length,
    columns: [
      { name: unit, values: pick(answer.peakX) },
      { name: "total_bytes", values: pick(answer.totalBytes) },
      ...answer.categories.map(({ name, bytes }) => ({
        name: `${name}_bytes`,
        values: pick(bytes),
      })),
    ],
  };
}
