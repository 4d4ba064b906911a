/** Texts wrap; the first column names a row. */

import type { ComponentChildren } from "preact";
import "./row_table.css";

export interface PlainColumn<T> {
  /** "" in all columns: no headings. */
  readonly title: string;
  readonly look?: "num" | "nowrap" | "quiet";
  readonly cell: (row: T) => ComponentChildren;
}

export function PlainTable<T>(props: {
  readonly label: string;
  readonly columns: readonly PlainColumn<T>[];
  readonly rows: readonly T[];
}) {
  const { label, columns, rows } = props;
  return (
    <div class="table-scroll">
      <table class="data-table" aria-label={label}>
        {columns.some(({ title }) => title !== "") && (
          <thead>
            <tr>
              {columns.map(({ title, look }, index) => (
                <th key={index} scope="col" class={look}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map((row, place) => (
            <tr key={place}>
              {columns.map(({ look, cell }, index) =>
                index === 0 ? (
                  <th key={index} scope="row" class={look}>
                    {cell(row)}
                  </th>
                ) : (
                  <td key={index} class={look}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
