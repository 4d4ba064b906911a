/** A tree of rows in the one table: the owner says which are in sight, in what order. */

import { useMemo } from "preact/hooks";
import { RowTable, type RowColumn } from "../row_table/row_table";
import type { Cell, TreeColumn, TreeTableProps } from "./types";

export function TreeTable({ columns, rows, onToggle, ...rest }: TreeTableProps) {
  const ids = useMemo(() => rows.map(({ id }) => id), [rows]);
  const shown = useMemo(() => columns.map(rowColumn), [columns]);
  const tree = { rows, onToggle };
  return <RowTable {...rest} columns={shown} rows={ids} tree={tree} />;
}

function rowColumn({ minWidthPx, ...column }: TreeColumn): RowColumn {
  return {
    sortable: true,
    ...column,
    width: `minmax(${minWidthPx}px, ${column.isTree === true ? 3 : 1}fr)`,
    cell: (row) => withBar(column.cell(row)),
  };
}

function withBar({ bar, ...cell }: Cell): ReturnType<RowColumn["cell"]> {
  if (bar === undefined) return cell;
  const { from, to, colour } = bar;
  return { ...cell, bar: { from, share: to - from, colour } };
}
