/**
 * A table of many rows that is drawn anew in a millisecond or two: for numbers that
 * change with every move of the mouse. Only the rows in sight are elements.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { firstRow } from "../export/data_table";
import "./row_table.css";

export const ROW_PX = 24;
const HEAD_PX = 28;
const SPARE_ROWS = 4;
/** Between columns, and at both ends; as in the style sheet. */
const GAP_PX = 12;
const END_PX = 10;

export interface RowCell {
  readonly text: string;
  /** Every digit, or the whole text; shown when pointed at. */
  readonly title?: string;
  /** "#rrggbb" before the text. */
  readonly swatch?: string;
  /** A bar behind the number: its share of the cell, and its colour. */
  readonly bar?: { readonly share: number; readonly colour: string };
  /** Said after the text, fainter. */
  readonly note?: string;
}

export interface RowColumn {
  readonly key: string;
  readonly title: string;
  readonly hint?: string;
  readonly numeric: boolean;
  /** A CSS width of the grid: "96px", "minmax(160px, 1fr)". */
  readonly width: string;
  /** What it is sorted by. */
  readonly values?: ArrayLike<number> | readonly string[];
  /** The table's owner sorts by it, without values. */
  readonly sortable?: boolean;
  /** A first click on its heading begins with the lowest, as with texts. */
  readonly ascends?: boolean;
  readonly cell: (row: number) => RowCell;
}

export interface RowTableProps {
  readonly label: string;
  readonly columns: readonly RowColumn[];
  /** Rows in the order shown. */
  readonly rows: ArrayLike<number>;
  /** Absent where rows cannot be chosen. */
  readonly selected?: number | null;
  readonly onSelect?: (row: number) => void;
  /** The row under the pointer; null: none is. */
  readonly onHover?: (row: number | null) => void;
  readonly sort: { readonly key: string; readonly descending: boolean } | null;
  readonly onSort?: (key: string) => void;
  readonly empty: string;
  readonly heightPx: number;
}

export function RowTable(props: RowTableProps) {
  const {
    label,
    columns,
    rows,
    selected = null,
    onSelect,
    sort,
    onSort,
    heightPx,
  } = props;
  const [scrollPx, setScrollPx] = useState(0);
  const [shiftPx, setShiftPx] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const bodyPx = heightPx - HEAD_PX;
  const first = Math.max(0, firstRow(scrollPx, rows.length, bodyPx) - SPARE_ROWS);
  const most = Math.ceil(bodyPx / ROW_PX) + 2 * SPARE_ROWS;
  const shown = Array.from(
    { length: Math.max(0, Math.min(most, rows.length - first)) },
    (_, i) => first + i,
  );
  const template = columns.map(({ width }) => width).join(" ");
  const leastPx = leastWidthPx(columns);
  useEffect(() => {
    // Fewer rows than were scrolled to.
    const most_ = Math.max(0, rows.length * ROW_PX - bodyPx);
    if (scrollPx > most_) scroller.current?.scrollTo({ top: most_ });
  }, [rows.length]);

  useEffect(() => {
    // Chosen elsewhere, such as in a picture of the same rows.
    const place = selected === null ? -1 : Array.from(rows).indexOf(selected);
    if (place >= 0) reveal(place);
  }, [selected]);

  function reveal(place: number): void {
    const box = scroller.current;
    if (box === null) return;
    const top = place * ROW_PX;
    const bottom = top + ROW_PX;
    // Without the bar that scrolls sideways.
    const heightPx = box.clientHeight;
    if (top < box.scrollTop) box.scrollTo({ top });
    else if (bottom > box.scrollTop + heightPx) {
      box.scrollTo({ top: bottom - heightPx });
    }
  }

  function move(by: number): void {
    const at = selected === null ? -1 : Array.from(rows).indexOf(selected);
    const next = Math.min(Math.max(at + by, 0), rows.length - 1);
    const row = rows[next];
    // At an end there is no other: choosing the same again would give it up.
    if (row === undefined || row === selected) return;
    onSelect?.(row);
    reveal(next);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(bodyPx / ROW_PX) - 1);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -rows.length,
      End: rows.length,
    };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    move(by);
  }

  return (
    <div
      class="row-table"
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      style={{ height: `${heightPx}px` }}
    >
      <div class="row-table-head" style={{ height: `${HEAD_PX}px` }}>
        <div
          class="row-table-line"
          role="row"
          aria-rowindex={1}
          style={{
            gridTemplateColumns: template,
            minWidth: `${leastPx}px`,
            transform: `translateX(${-shiftPx}px)`,
          }}
        >
          {columns.map((column) => (
            <Heading key={column.key} column={column} sort={sort} onSort={onSort} />
          ))}
        </div>
      </div>
      <div
        ref={scroller}
        class="row-table-body"
        style={{ height: `${bodyPx}px` }}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onPointerLeave={() => props.onHover?.(null)}
        onScroll={(event) => {
          setScrollPx(event.currentTarget.scrollTop);
          setShiftPx(event.currentTarget.scrollLeft);
        }}
      >
        {rows.length === 0 && <p class="quiet row-table-empty">{props.empty}</p>}
        <div
          class="row-table-rows"
          style={{ height: `${rows.length * ROW_PX}px`, minWidth: `${leastPx}px` }}
        >
          {shown.map((place) => {
            const row = rows[place] ?? 0;
            return (
              <div
                key={place}
                role="row"
                aria-rowindex={place + 2}
                aria-selected={row === selected}
                class={`row-table-line row-table-row ${row === selected ? "is-selected" : ""}`}
                style={{ top: `${place * ROW_PX}px`, gridTemplateColumns: template }}
                onClick={() => onSelect?.(row)}
                onPointerEnter={() => props.onHover?.(row)}
              >
                {columns.map((column) => (
                  <Cell key={column.key} column={column} cell={column.cell(row)} />
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** The columns at their narrowest; beyond that the table scrolls sideways. */
function leastWidthPx(columns: readonly RowColumn[]): number {
  const widths = columns.map(({ width }) => Number(/\d+/.exec(width)?.[0] ?? 0));
  const sum = widths.reduce((all, one) => all + one, 0);
  return sum + GAP_PX * (columns.length - 1) + 2 * END_PX;
}

function Heading({
  column,
  sort,
  onSort,
}: {
  readonly column: RowColumn;
  readonly sort: RowTableProps["sort"];
  readonly onSort: RowTableProps["onSort"];
}) {
  const { key, title, hint, numeric, values, sortable = values !== undefined } = column;
  const sorted = sort?.key === key;
  const direction = sort?.descending === true ? "descending" : "ascending";
  const kind = numeric ? "row-table-cell is-number" : "row-table-cell";
  return (
    <span
      role="columnheader"
      class={kind}
      title={hint ?? title}
      aria-sort={sorted ? direction : "none"}
    >
      {sortable && onSort !== undefined ? (
        <button type="button" onClick={() => onSort(key)}>
          {title}
          {sorted && <span aria-hidden="true">{sort.descending ? " ▼" : " ▲"}</span>}
        </button>
      ) : (
        title
      )}
    </span>
  );
}

function Cell({
  column,
  cell,
}: {
  readonly column: RowColumn;
  readonly cell: RowCell;
}) {
  const { bar } = cell;
  return (
    <span
      role="gridcell"
      class={column.numeric ? "row-table-cell is-number" : "row-table-cell"}
      title={cell.title ?? cell.text}
    >
      {cell.swatch !== undefined && (
        <span class="row-table-swatch" style={{ background: cell.swatch }} />
      )}
      {cell.text}
      {cell.note !== undefined && <span class="quiet"> {cell.note}</span>}
      {bar !== undefined && (
        <span
          class="row-table-bar"
          style={{
            width: `${Math.min(100, Math.max(0, bar.share * 100))}%`,
            background: bar.colour,
          }}
        />
      )}
    </span>
  );
}
