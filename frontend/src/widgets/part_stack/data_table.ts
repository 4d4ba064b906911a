/** The stacked parts as a table. */

import type { Table } from "../../model/table";
import { X_COLUMN } from "../../model/lines/x_kind";
import type { Viewport } from "../../render/viewport";
import { centreOf, columnsWithin } from "./layout";
import type { StackedSteps } from "./types";

/** One row per column in sight, with every digit. */
export function stackTable(answer: StackedSteps, view: Viewport): Table {
  const columns = columnsWithin(answer, view.x0, view.x1);
  const pick = (values: ArrayLike<number>): number[] =>
    columns.map((column) => values[column] ?? NaN);
  const x =
    answer.x === "step"
      ? []
      : [
          {
            name: X_COLUMN[answer.x],
            values: columns.map((column) => centreOf(answer, column)),
          },
        ];
  return {
    numRows: columns.length,
    columns: [
      ...x,
      { name: "step", values: pick(answer.shownStep) },
      { name: "rank", values: pick(answer.columnRank) },
      { name: "step time (seconds)", values: pick(answer.seconds) },
      ...answer.parts.map(({ name, seconds }) => ({
        name: `${name} (seconds)`,
        values: pick(seconds),
      })),
    ],
  };
}
