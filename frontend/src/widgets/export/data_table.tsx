import { useMemo, useState } from "preact/hooks";
import { cellText, type Table, type TableColumn } from "../../model/table";
import { headingWidth } from "../row_table/widths/headings";
import { rowsMarkdown } from "../row_table/markdown";
import { RowTable } from "../row_table/row_table";
import { useSort } from "../row_table/use_sort";
import type { RowColumn } from "../row_table/columns";

/** Rows that determine the width of a column. */
const SAMPLE_ROWS = 100;
const LETTER_PX = 7;
const WIDEST_PX = 420;
const AS_IT_IS = { key: "", descending: true };

/** Addresses (0x...) stay as they are. */
export function numberText(text: string): string {
  if (text === "") return "–";
  const value = text.startsWith("0x") ? NaN : Number(text);
  return Number.isFinite(value)
    ? value.toLocaleString("en-US", { maximumFractionDigits: 9 })
    : text;
}

function rowColumn(column: TableColumn, place: number, numRows: number): RowColumn {
  const { name, values } = column;
  const textOf = (row: number): string => numberText(cellText(column, row));
  const sample = Array.from(
    { length: Math.min(numRows, SAMPLE_ROWS) },
    (_, row) => row,
  );
  const wide = Math.max(
    headingWidth(name, false),
    ...sample.map((row) => textOf(row).length * LETTER_PX),
  );
  return {
    key: String(place),
    title: name,
    values,
    numeric: typeof values[0] !== "string",
    width: `minmax(${Math.min(wide, WIDEST_PX)}px, 1fr)`,
    cell: (row) => ({ text: textOf(row) }),
  };
}

function dataColumns({ columns, numRows }: Table): readonly RowColumn[] {
  return columns.map((column, place) => rowColumn(column, place, numRows));
}

/** In the order of the data. */
export function dataMarkdown(label: string, table: Table): string {
  const rows = Array.from({ length: table.numRows }, (_, row) => row);
  const titles = { title: label, summary: "", numAll: table.numRows };
  return rowsMarkdown(titles, dataColumns(table), rows);
}

export function DataTable(props: {
  readonly label: string;
  readonly table: Table;
  readonly heightPx: number;
}) {
  const { numRows } = props.table;
  const shown = useMemo(() => dataColumns(props.table), [props.table]);
  const [order, setOrder] = useState<string | null>(null);
  const sorted = useSort(shown, numRows, AS_IT_IS, order, setOrder);
  return (
    <RowTable
      {...sorted}
      label={`${props.label} as a table`}
      columns={shown}
      empty="No rows."
      heightPx={props.heightPx}
      steady
    />
  );
}
