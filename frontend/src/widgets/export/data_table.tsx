/** A plain table of any length: only the rows in sight exist, so it stays quick. */

import { useState } from "preact/hooks";
import { cellText, type Table } from "../../model/table";
import "./data_table.css";

const ROW_PX = 24;
/** Rows drawn beyond each edge, so that fast scrolling shows no holes. */
const SPARE_ROWS = 8;
/** Browsers give up on taller elements; beyond it the scroll bar is scaled. */
const TALLEST_PX = 8_000_000;

/** The first row in sight for a scroll position. */
export function firstRow(scrollPx: number, numRows: number, heightPx: number): number {
  const full = numRows * ROW_PX;
  const shown = Math.min(full, TALLEST_PX);
  const scale = shown > heightPx ? (full - heightPx) / (shown - heightPx) : 1;
  return Math.max(0, Math.floor((scrollPx * scale) / ROW_PX));
}

/** Numbers with their thousands apart; addresses and all other texts as they are. */
export function numberText(text: string): string {
  if (text === "") return "–";
  const value = text.startsWith("0x") ? NaN : Number(text);
  return Number.isFinite(value)
    ? value.toLocaleString("en-US", { maximumFractionDigits: 9 })
    : text;
}

export interface DataTableProps {
  readonly label: string;
  readonly table: Table;
  readonly heightPx: number;
}

export function DataTable({ label, table, heightPx }: DataTableProps) {
  const [scrollPx, setScrollPx] = useState(0);
  const first = Math.max(0, firstRow(scrollPx, table.numRows, heightPx) - SPARE_ROWS);
  const most = Math.ceil(heightPx / ROW_PX) + 2 * SPARE_ROWS;
  const rows = Array.from(
    { length: Math.max(0, Math.min(most, table.numRows - first)) },
    (_, i) => first + i,
  );
  const totalPx = Math.min(table.numRows * ROW_PX, TALLEST_PX);
  const abovePx = Math.min(first * ROW_PX, Math.max(0, totalPx - rows.length * ROW_PX));
  return (
    <div
      class="cell-table"
      style={{ height: `${heightPx}px` }}
      tabIndex={0}
      role="region"
      aria-label={`${label} as a table`}
      onScroll={(event) => setScrollPx(event.currentTarget.scrollTop)}
    >
      <table aria-rowcount={table.numRows + 1}>
        <thead>
          <tr>
            {table.columns.map((column) => (
              <th key={column.name} scope="col">
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr aria-hidden="true" style={{ height: `${abovePx}px` }} />
          {rows.map((row) => (
            <tr key={row} aria-rowindex={row + 2}>
              {table.columns.map((column) => (
                <td key={column.name}>{numberText(cellText(column, row))}</td>
              ))}
            </tr>
          ))}
          <tr
            aria-hidden="true"
            style={{
              height: `${Math.max(0, totalPx - abovePx - rows.length * ROW_PX)}px`,
            }}
          />
        </tbody>
      </table>
    </div>
  );
}
