/** The columns of two traces' tables joined by name. Pure. */

import { divergingColours } from "../../../model/category";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { formatSigned, formatSignedExact } from "../../../model/words/signed";
import { barOf, longestOf, textColumn } from "../../../widgets/row_table/columns";
import type { RowColumn } from "../../../widgets/row_table/row_table";
import type { ViewProps } from "../../shared/view_props";
import { percentText } from "../difference_table";
import type { Measure } from "./words";
import type { Joined, Pairs } from "./profiles";
import { changeColumn, percentColumn, sideColumn } from "../rows/columns";

export function profileColumns(
  rows: Joined,
  pairs: Pairs,
  { unit }: Measure,
  title: string,
  { theme, byteUnit }: Pick<ViewProps, "theme" | "byteUnit">,
): readonly RowColumn[] {
  const [less, more] = divergingColours(theme);
  const most = longestOf(pairs.change);
  const value = (side: "a" | "b", rowOf: Int32Array): RowColumn =>
    sideColumn(
      side,
      "104px",
      (row) => rowOf[row] !== -1,
      (row) => {
        const one = pairs[side][row] ?? NaN;
        return {
          text: formatQuantity(one, unit, byteUnit),
          title: formatExact(one, unit),
        };
      },
    );
  const alone = (row: number): string =>
    rows.aRow[row] === -1 ? "only in B" : rows.bRow[row] === -1 ? "only in A" : "";
  return [
    // Of a C++ template what it returns says nothing.
    textColumn("name", title, "minmax(200px, 1fr)", rows.names, undefined, (name) => ({
      text: name.replace(/^void /, ""),
      title: name,
    })),
    {
      key: "side",
      title: "",
      numeric: false,
      width: "76px",
      cell: (row) => ({ text: alone(row) }),
    },
    value("a", rows.aRow),
    value("b", rows.bRow),
    changeColumn("128px", (row) => {
      const change = pairs.change[row] ?? NaN;
      return {
        text: formatSigned(change, unit, byteUnit),
        title: formatSignedExact(change, unit),
        ...(Math.abs(change) > 0
          ? { bar: barOf(Math.abs(change), most, change > 0 ? more : less) }
          : {}),
      };
    }),
    percentColumn("88px", (row) => {
      const side = alone(row);
      if (side !== "") return { text: side === "only in A" ? "gone" : "new" };
      const percent = pairs.percent[row] ?? NaN;
      if (!Number.isFinite(percent)) return { text: "–" };
      const text = percentText(pairs.a[row] ?? NaN, pairs.b[row] ?? NaN);
      return { text, title: `${percent} %` };
    }),
  ];
}
