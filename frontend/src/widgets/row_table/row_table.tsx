/**
 * The one table: rows of columns, or a tree of them. Drawn anew in a millisecond or two,
 * for numbers that change with every move of the mouse; only rows in sight are elements.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { TableColumn } from "../../model/table";
import type { TreeRow } from "../../model/tree";
import { Cell, Heading } from "./cells";
import { headingLines } from "./headings";
import { afterKey, firstRow, ROW_PX, scrollScale, totalPx } from "./rows";
import "./row_table.css";

export { ROW_PX };

const HEAD_PX = 28;
/** What each line more of a heading takes. */
const HEAD_LINE_PX = 18;
const SPARE_ROWS = 6;
/** Between columns, and at both ends; as in the style sheet. */
const GAP_PX = 12;
const END_PX = 10;

export interface RowCell {
  readonly text: string;
  /** Its end, which a narrow cell shows as well: the middle is cut. */
  readonly tail?: string;
  /** Every digit, or the whole text; shown when pointed at. */
  readonly title?: string;
  /** "#rrggbb" before the text. */
  readonly swatch?: string;
  /** A bar below the number: its share of the cell, where it begins, and its colour. */
  readonly bar?: {
    readonly share: number;
    readonly from?: number;
    readonly colour: string;
  };
  /** Said after the text, fainter. */
  readonly note?: string;
  readonly tone?: "quiet" | "warn" | "bad" | "link";
  /** It is the cause of what the page is about. */
  readonly isCause?: boolean;
  /** Shown instead of the text. */
  readonly content?: ComponentChildren;
}

/** A column, declared once: its cells, its order, its help and what a file has of it. */
export interface RowColumn {
  /** Its word in the URL, in files, and to the route that sorts by it. */
  readonly key: string;
  /** May have several lines. */
  readonly title: string;
  /** What the column means, and how it is reckoned; shown when its heading is pointed at. */
  readonly hint?: string;
  /** "#rrggbb" beside the heading. */
  readonly swatch?: string;
  readonly numeric: boolean;
  /** A CSS width of the grid: "96px", "minmax(160px, 1fr)". */
  readonly width: string;
  /** What it is sorted by, and what is exported; see `tableOf`. */
  readonly values?: ArrayLike<number> | readonly string[];
  /** What a file has of it, with its unit; its key and its values where absent. */
  readonly exported?: TableColumn | null;
  /** The table's owner sorts by it, without values; false: not though it has some. */
  readonly sortable?: boolean;
  /** A first click on its heading begins with the lowest, as with texts. */
  readonly ascends?: boolean;
  /** The column that holds the tree: indented, with a button to open a row. */
  readonly isTree?: boolean;
  readonly cell: (row: number) => RowCell;
}

export interface RowTableProps {
  readonly label: string;
  readonly columns: readonly RowColumn[];
  /** Rows in the order shown. */
  readonly rows: ArrayLike<number>;
  /** The row chosen; absent where a row is only opened, by a click or Enter. */
  readonly selected?: number | null;
  readonly onSelect?: (row: number) => void;
  /** The row under the pointer; null: none is. */
  readonly onHover?: (row: number | null) => void;
  /** Rows that stand out besides the one selected. */
  readonly isMarked?: (row: number) => boolean;
  readonly sort: { readonly key: string; readonly descending: boolean } | null;
  /** A click on a heading. */
  readonly onSort?: (key: string) => void;
  readonly empty: string;
  /** The most it may take; fewer rows take less. */
  readonly heightPx: number;
  /** It always takes `heightPx`: its rows change under the pointer. */
  readonly steady?: boolean;
  /** Rows as a tree, by their place; arrow keys open and close them. */
  readonly tree?: {
    readonly rows: readonly TreeRow[];
    readonly onToggle: (row: number) => void;
  };
}

export function RowTable(props: RowTableProps) {
  const { label, columns, rows, onSelect, heightPx, tree } = props;
  const [scrollPx, setScrollPx] = useState(0);
  const [widths, setWidths] = useState<Readonly<Record<string, number | null>>>({});
  const [cursor, setCursor] = useState<number | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  /** The row that the pointer went down on: another may stand there when it goes up. */
  const pressed = useRef<number | null>(null);
  const revealed = useRef<number | null>(null);
  /** Of the wheel, what is less than a pixel of the scroll bar. */
  const turned = useRef(0);
  const selected = props.selected === undefined ? cursor : props.selected;
  const numLines = Math.max(1, ...columns.map((one) => headingLines(one.title).length));
  const headPx = HEAD_PX + (numLines - 1) * HEAD_LINE_PX;
  const bodyPx = heightPx - headPx;
  const scale = scrollScale(rows.length, bodyPx);
  const first = Math.max(0, firstRow(scrollPx, rows.length, bodyPx) - SPARE_ROWS);
  const most = Math.ceil(bodyPx / ROW_PX) + 2 * SPARE_ROWS;
  const numShown = Math.max(0, Math.min(most, rows.length - first));
  const hasToggles = tree?.rows.some(({ numChildren }) => numChildren > 0) === true;
  const wide = columns.map(({ key, width }) => {
    const px = widths[key];
    return px === undefined ? width : `${px}px`;
  });
  // At its narrowest; where all need more the table scrolls sideways.
  const leastPx = wide.reduce((sum, css) => sum + Number(/\d+/.exec(css)?.[0] ?? 0), 0);
  const gapsPx = GAP_PX * (columns.length - 1) + 2 * END_PX;
  const lineStyle = { gridTemplateColumns: wide.join(" ") };

  // Chosen elsewhere, such as in a picture of the same rows; and once only: whoever
  // scrolls away from it wants to be elsewhere.
  useEffect(() => {
    if (selected === revealed.current) return;
    const place = selected === null ? -1 : Array.from(rows).indexOf(selected);
    if (selected !== null && place < 0) return;
    revealed.current = selected;
    const box = scroller.current;
    if (box === null || place < 0) return;
    const top = (place * ROW_PX) / scale;
    const lastTop = top + ROW_PX - (box.clientHeight - headPx);
    if (top < box.scrollTop) box.scrollTo({ top });
    else if (lastTop > box.scrollTop) box.scrollTo({ top: lastTop });
  }, [selected, rows]);

  /** Where the scroll bar stands for more than it can be, the wheel still goes by rows. */
  function onWheel(event: WheelEvent): void {
    const box = scroller.current;
    if (box === null || event.ctrlKey || event.shiftKey) return;
    const unitPx = [1, ROW_PX, bodyPx][event.deltaMode] ?? 1;
    turned.current += (event.deltaY * unitPx) / scale;
    const by = Math.trunc(turned.current);
    const before = box.scrollTop;
    box.scrollTop += by;
    turned.current -= by;
    // At an end the page scrolls on.
    if (by === 0 || box.scrollTop !== before) event.preventDefault();
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target !== scroller.current || onSelect === undefined) return;
    if (event.key === "Enter" && props.selected === undefined && cursor !== null) {
      onSelect(cursor);
      return;
    }
    const pageRows = Math.max(1, Math.floor(bodyPx / ROW_PX) - 1);
    const done = afterKey(event.key, rows, selected, pageRows, tree?.rows);
    if (done === null) return;
    event.preventDefault();
    event.stopPropagation();
    if (done.kind === "toggle") tree?.onToggle(done.row);
    // At an end there is no other: choosing the same again would give it up.
    else if (done.row === selected) return;
    else if (props.selected === undefined) setCursor(done.row);
    else onSelect(done.row);
  }

  const bodyRow = (place: number) => {
    const row = rows[place] ?? 0;
    const node = tree?.rows[place];
    const isOn = row === selected || props.isMarked?.(row) === true;
    const top = place * ROW_PX - scrollPx * (scale - 1);
    return (
      <div
        key={place}
        role="row"
        aria-rowindex={place + 2}
        aria-selected={row === selected}
        aria-level={node && node.depth + 1}
        aria-expanded={node && node.numChildren > 0 ? node.expanded : undefined}
        class={`row-table-line row-table-row ${isOn ? "is-selected" : ""}`}
        style={{ ...lineStyle, top: `${top}px` }}
        onPointerDown={() => {
          pressed.current = row;
        }}
        onClick={() => {
          onSelect?.(pressed.current ?? row);
          pressed.current = null;
        }}
        onPointerEnter={() => props.onHover?.(row)}
      >
        {columns.map((column) => (
          <Cell
            key={column.key}
            column={column}
            cell={column.cell(row)}
            node={hasToggles && column.isTree === true ? node : undefined}
            onToggle={() => tree?.onToggle(row)}
          />
        ))}
      </div>
    );
  };
  const isTree = tree !== undefined;
  return (
    <div
      ref={scroller}
      class={isTree ? "row-table tree-table" : "row-table"}
      role={isTree ? "treegrid" : "grid"}
      aria-label={isTree ? `${label}; arrow keys move and open rows` : label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      style={{ [props.steady === true ? "height" : "maxHeight"]: `${heightPx}px` }}
      onKeyDown={onKeyDown}
      onWheel={scale > 1 ? onWheel : undefined}
      onPointerLeave={() => props.onHover?.(null)}
      onScroll={(event) => setScrollPx(event.currentTarget.scrollTop)}
    >
      <div style={{ minWidth: `${leastPx + gapsPx}px` }}>
        <div
          class="row-table-line row-table-head"
          role="row"
          aria-rowindex={1}
          style={{ ...lineStyle, height: `${headPx}px` }}
        >
          {columns.map((column) => (
            <Heading
              key={column.key}
              column={column}
              sort={props.sort}
              onSort={props.onSort}
              onWidth={(px) => setWidths({ ...widths, [column.key]: px })}
            />
          ))}
        </div>
        {rows.length === 0 && <p class="row-table-line quiet">{props.empty}</p>}
        <div class="row-table-rows" style={{ height: `${totalPx(rows.length)}px` }}>
          {Array.from({ length: numShown }, (_, i) => bodyRow(first + i))}
        </div>
      </div>
    </div>
  );
}
