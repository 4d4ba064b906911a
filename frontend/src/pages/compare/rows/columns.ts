/** The columns of the difference's table, and those that all tables of Compare share. Pure. */

import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import { divergingColours } from "../../../model/category";
import { formatSigned, formatSignedExact } from "../../../model/words/signed";
import { absentCell, barOf, textColumn } from "../../../widgets/row_table/columns";
import type { RowCell, RowColumn } from "../../../widgets/row_table/row_table";
import { changePercent, percentText } from "../difference_table";
import type { CompareRows } from "../params";
import type { Rows } from "./rows";
import { ROW_WORDS } from "../params";

type CellOf = (row: number) => RowCell;

/** A column that the table's owner sorts by. */
function sortedColumn(
  key: string,
  title: string,
  width: string,
  cell: CellOf,
  hint = title,
): RowColumn {
  return { key, title, width, cell, hint, numeric: true, sortable: true };
}

/** What one side has; `has` says whether it has the row at all. */
export function sideColumn(
  side: "a" | "b",
  width: string,
  has: (row: number) => boolean,
  cell: CellOf,
): RowColumn {
  return sortedColumn(side, side.toUpperCase(), width, (row) =>
    has(row) ? cell(row) : absentCell("Only the other side has it"),
  );
}

export function changeColumn(width: string, cell: CellOf): RowColumn {
  const hint = "More is what B has more of; sorted by the size of the difference";
  return sortedColumn("change", "B − A", width, cell, hint);
}

export function percentColumn(width: string, cell: CellOf): RowColumn {
  const hint = "(B − A) ÷ A; of little, a small difference is many per cent";
  return sortedColumn("percent", "%", width, cell, hint);
}

export function rowColumns(
  rows: Rows,
  by: CompareRows,
  theme: Theme,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const [less, more] = divergingColours(theme);
  const most = rows.a.reduce(
    (high, a, row) => Math.max(high, Math.abs((rows.b[row] ?? 0) - a)),
    1,
  );
  const bytes = (side: "a" | "b", values: Float64Array, blocks: Int32Array) =>
    sideColumn(
      side,
      "88px",
      (row) => (blocks[row] ?? 0) > 0,
      (row) => ({
        text: formatBytes(values[row] ?? 0, byteUnit),
        title: `${formatBytesExact(values[row] ?? 0)} in ${formatInteger(blocks[row] ?? 0)} blocks`,
      }),
    );
  return [
    textColumn(
      "label",
      ROW_WORDS[by][2],
      "minmax(160px, 1fr)",
      rows.labels,
      undefined,
      (text, row) => ({ text, title: rows.titles[row] ?? "" }),
    ),
    bytes("a", rows.a, rows.aBlocks),
    bytes("b", rows.b, rows.bBlocks),
    changeColumn("112px", (row) => {
      const change = (rows.b[row] ?? 0) - (rows.a[row] ?? 0);
      return {
        text: formatSigned(change, "bytes", byteUnit),
        title: formatSignedExact(change, "bytes"),
        bar: barOf(Math.abs(change), most, change > 0 ? more : less),
      };
    }),
    percentColumn("80px", (row) => {
      const [a, b] = [rows.a[row] ?? 0, rows.b[row] ?? 0];
      if (b === 0 && a > 0) return { text: "gone", title: "Only A has it" };
      const percent = changePercent(a, b);
      return {
        text: percentText(a, b),
        title: Number.isFinite(percent) ? `${percent} %` : "Only B has it",
      };
    }),
    {
      key: "blocks",
      title: "Blocks",
      hint: "Live blocks of A and of B",
      numeric: true,
      width: "112px",
      cell: (row) => ({
        text: `${formatInteger(rows.aBlocks[row] ?? 0)} → ${formatInteger(rows.bBlocks[row] ?? 0)}`,
      }),
    },
  ];
}
