/**
 * A tree as a table: the owner says which rows are in sight and in what order (see
 * `model/tree.ts`), Tabulator keeps only those on screen as elements.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import {
  Tabulator,
  type CellComponent,
  type ColumnDefinition,
  type RowComponent,
} from "tabulator-tables";
import type { TreeRow } from "../../model/tree";
import { useWidth } from "../line_chart/use_size";
import { makeHeadersFocusable } from "../tabulator/elements";
import { useRowPressed } from "../tabulator/use_pressed";
import { heading, numberCell, treeCell } from "./cells";
import { headingLines } from "./headings";
import { afterKey } from "./keys";
import "./tree_table.css";
import type { TreeTableProps } from "./types";

const ROW_PX = 24;
const ROW_BORDERED_PX = ROW_PX + 1;
/** The heading row and the frame; and what each line more of a heading takes. */
const HEAD_PX = 36;
const HEAD_LINE_PX = 20;
/** The scroll bar below, where the columns need more than there is. */
const SCROLL_BAR_PX = 16;

/** What of a table needs new headings rather than new rows. */
function columnsKey({ columns, sort }: TreeTableProps): string {
  const parts = columns.map(({ key, title, swatch }) => [key, title, swatch]);
  return JSON.stringify([parts, sort]);
}

/** Columns of a table that outlives them: cells ask for the newest at drawing time. */
function definitions(latest: { readonly current: TreeTableProps }): ColumnDefinition[] {
  const { columns, sort } = latest.current;
  return columns.map((column) => {
    const drawn = (cell: CellComponent): HTMLElement | string => {
      const now = latest.current.columns.find((one) => one.key === column.key);
      const row = rowOf(cell);
      if (now === undefined) return "";
      if (now.isTree !== true) return numberCell(now.cell(row.id));
      const hasToggles = latest.current.rows.some(({ numChildren }) => numChildren > 0);
      return treeCell(row, now.cell(row.id), hasToggles, (id) =>
        latest.current.onToggle(id),
      );
    };
    return {
      title: column.title,
      field: column.key,
      headerSort: false,
      minWidth: column.minWidthPx,
      widthGrow: column.isTree === true ? 3 : 1,
      frozen: column.isTree === true,
      hozAlign: column.numeric ? "right" : "left",
      headerHozAlign: column.numeric ? "right" : "left",
      titleFormatter: () => heading(column, sort),
      formatter: drawn,
      headerClick: () => {
        if (column.sortable !== false) latest.current.onSort(column.key);
      },
    };
  });
}

/** The rows handed to Tabulator are ours. */
function rowOf(of: CellComponent | RowComponent): TreeRow {
  return of.getData() as TreeRow;
}

export function TreeTable(props: TreeTableProps) {
  const { rows, selected } = props;
  const root = useRef<HTMLDivElement>(null);
  const [table, setTable] = useState<Tabulator | null>(null);
  const widthPx = useWidth(root);
  const isPressed = useRowPressed(root);
  const leastPx = props.columns.reduce((sum, { minWidthPx }) => sum + minWidthPx, 0);
  const numLines = props.columns.map(({ title }) => headingLines(title).length);
  const headPx = HEAD_PX + (Math.max(1, ...numLines) - 1) * HEAD_LINE_PX;
  const framePx = headPx + (leastPx > widthPx ? SCROLL_BAR_PX : 0);
  // Without rows there is a sentence, which needs a little more room.
  const wantedPx = (rows.length === 0 ? 2 : rows.length) * ROW_BORDERED_PX + framePx;
  const heightPx = Math.min(props.heightPx, wantedPx);
  const latest = useRef(props);
  latest.current = props;
  const key = columnsKey(props);
  const drawn = useRef({ key: "", rows, columns: props.columns });
  const scrolledTo = useRef<number | null>(null);

  useEffect(() => {
    if (root.current === null) return;
    const { rows: first, columns } = latest.current;
    drawn.current = { key: columnsKey(latest.current), rows: first, columns };
    const made = new Tabulator(root.current, {
      data: [...first],
      index: "id",
      layout: "fitColumns",
      height: heightPx,
      rowHeight: ROW_PX,
      columnHeaderVertAlign: "bottom",
      placeholder: () => latest.current.empty,
      columns: definitions(latest),
      rowFormatter: (row) => describeRow(row, latest.current.selected),
    });
    made.on("tableBuilt", () => {
      makeHeadersFocusable(made);
      made.element.setAttribute("role", "treegrid");
      made.element.setAttribute("aria-label", latest.current.label);
      setTable(made);
    });
    made.on("rowClick", (_, row) => latest.current.onSelect(rowOf(row).id));
    return () => {
      made.destroy();
      setTable(null);
    };
  }, []);
  useEffect(() => {
    if (table === null || isPressed) return;
    const holder = root.current?.querySelector(".tabulator-tableholder") ?? null;
    const place = { left: holder?.scrollLeft ?? 0, top: holder?.scrollTop ?? 0 };
    const before = drawn.current;
    drawn.current = { key, rows, columns: props.columns };
    const reheaded = before.key !== key;
    if (!reheaded && before.rows === rows && before.columns === props.columns) {
      scrollToSelected(table);
      return;
    }
    if (reheaded) {
      table.setColumns(definitions(latest));
      makeHeadersFocusable(table);
    }
    void table.replaceData([...rows]).then(() => {
      // New rows keep the place scrolled to, new headings do not.
      if (reheaded) holder?.scrollTo(place);
      scrollToSelected(table);
    });
  }, [table, key, rows, props.columns, isPressed]);
  useEffect(() => table?.setHeight(heightPx), [table, heightPx]);
  useEffect(() => {
    if (table === null) return;
    for (const row of table.getRows("visible")) describeRow(row, selected);
    scrollToSelected(table);
  }, [table, selected]);

  /** Once for each selection: whoever scrolls away from it wants to be elsewhere. */
  function scrollToSelected(made: Tabulator): void {
    const { selected: wanted, rows: shown } = latest.current;
    if (wanted === scrolledTo.current) return;
    if (wanted !== null && !shown.some((row) => row.id === wanted)) return;
    scrolledTo.current = wanted;
    if (wanted === null) return;
    made.scrollToRow(wanted, "nearest", false).catch(() => {
      // The rows are being replaced; the next drawing scrolls.
      scrolledTo.current = null;
    });
  }

  return (
    <div
      class="tree-table grid"
      tabIndex={0}
      role="group"
      aria-label={`${props.label}; arrow keys move and open rows`}
      onKeyDown={(event) => {
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const done = afterKey(event.key, rows, selected);
        if (done === null) return;
        event.preventDefault();
        event.stopPropagation();
        if (done.kind === "select") props.onSelect(done.id);
        else props.onToggle(done.id);
      }}
    >
      <div ref={root} />
    </div>
  );
}

function describeRow(row: RowComponent, selected: number | null): void {
  const { id, depth, numChildren, expanded } = rowOf(row);
  const element = row.getElement();
  element.classList.toggle("is-selected", id === selected);
  element.setAttribute("aria-selected", String(id === selected));
  element.setAttribute("aria-level", String(depth + 1));
  if (numChildren > 0) element.setAttribute("aria-expanded", String(expanded));
}
