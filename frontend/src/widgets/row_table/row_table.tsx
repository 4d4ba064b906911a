/**
 * Only rows in view are elements: redrawn at every move of the pointer, in 1 to 2 ms.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useWidgetTexts } from "../../base/widget_words";
import type { TreeRow } from "../../model/tree";
import { Cell, Heading } from "./cells";
import { headingLines } from "./widths/headings";
import { afterKey, firstRow, ROW_PX, scrollScale, totalPx } from "./rows";
import type { RowColumn } from "./columns";
import type { Sort } from "../../model/shown_rows";
import "./row_table.css";

export { ROW_PX };

const HEAD_PX = 28;
/** Per further line of a heading. */
const HEAD_LINE_PX = 18;
const SPARE_ROWS = 6;

export interface RowTableProps {
  readonly label: string;
  /** Names it in the URL, where another word than the label does. */
  readonly word?: string | undefined;
  readonly columns: readonly RowColumn[];
  readonly rows: ArrayLike<number>;
  /** Absent: rows are only opened, by a click or Enter. */
  readonly selected?: number | null;
  readonly onSelect?: (row: number) => void;
  readonly onHover?: (row: number | null) => void;
  /** Highlighted besides the selected row. */
  readonly isMarked?: (row: number) => boolean;
  readonly sort: Sort | null;
  readonly onSort?: (key: string) => void;
  readonly empty: string;
  /** At most; fewer rows take less. */
  readonly heightPx: number;
  /** Always `heightPx`: rows change under the pointer. */
  readonly steady?: boolean;
  /** By place; arrow keys open and close rows. */
  readonly tree?: {
    readonly rows: readonly TreeRow[];
    readonly onToggle: (row: number) => void;
  };
}

export function RowTable(props: RowTableProps) {
  const { label, columns, rows, onSelect, heightPx, tree } = props;
  const [scrollPx, setScrollPx] = useState(0);
  const { widths, setWidth } = useWidths(props.word ?? label);
  const [cursor, setCursor] = useState<number | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  /** Row at pointer down: rows may move before pointer up. */
  const pressed = useRef<number | null>(null);
  const revealed = useRef<number | null>(null);
  /** Remainder of the wheel, below one px of the scroll bar. */
  const turned = useRef(0);
  const selected = props.selected === undefined ? cursor : props.selected;
  const numLines = Math.max(
    1,
    ...columns.map((column) => headingLines(column.title).length),
  );
  const headPx = HEAD_PX + (numLines - 1) * HEAD_LINE_PX;
  const bodyPx = heightPx - headPx;
  const scale = scrollScale(rows.length, bodyPx);
  const first = Math.max(0, firstRow(scrollPx, rows.length, bodyPx) - SPARE_ROWS);
  const most = Math.ceil(bodyPx / ROW_PX) + 2 * SPARE_ROWS;
  const numShown = Math.max(0, Math.min(most, rows.length - first));
  const hasToggles = tree?.rows.some(({ numChildren }) => numChildren > 0) === true;
  const wide = columns.map(({ key, width }) => {
    const px = widths.get(key);
    return px === undefined ? width : `${px}px`;
  });
  // At its narrowest; below that the table scrolls sideways.
  const leastPx = wide.reduce((sum, css) => sum + Number(/\d+/.exec(css)?.[0] ?? 0), 0);
  const gaps = `${columns.length - 1} * var(--row-table-gap) + 2 * var(--row-table-end)`;
  const lineStyle = { gridTemplateColumns: wide.join(" ") };

  // Scrolls to a row chosen elsewhere, once: the user may scroll away from it.
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

  /** A scaled scroll bar would skip rows: the wheel moves by rows. */
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
    // At an end there is no next row: selecting the same one again would clear it.
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
      <div style={{ minWidth: `calc(${leastPx}px + ${gaps})` }}>
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
              onWidth={(px, isDone) => setWidth(column.key, px, isDone)}
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

/** Px by key of columns that were dragged; in the URL once the pointer is released. */
function useWidths(table: string) {
  const [texts, setTexts] = useWidgetTexts("widths", table);
  const [dragged, setDragged] = useState<readonly [string, number] | null>(null);
  const written = texts.join(" ");
  const widths = useMemo(() => {
    const pxByKey = new Map(dragged === null ? [] : [dragged]);
    for (const text of texts) {
      const [, key = "", px = ""] = /^(.+)\.(\d{1,4})$/.exec(text) ?? [];
      if (key !== "" && !pxByKey.has(key)) pxByKey.set(key, Number(px));
    }
    return pxByKey;
  }, [written, dragged]);
  const setWidth = (key: string, px: number | null, isDone: boolean): void => {
    setDragged(px === null || isDone ? null : [key, px]);
    if (!isDone) return;
    const others = texts.filter((text) => !text.startsWith(`${key}.`));
    setTexts(px === null ? others : [...others, `${key}.${px}`]);
  };
  return { widths, setWidth };
}
