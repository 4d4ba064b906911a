import { useRef } from "preact/hooks";
import type { TreeRow } from "../../model/tree";
import { cut } from "../cut_text/cut_text";
import { Icon } from "../icon/icon";
import type { RowCell, RowColumn } from "./columns";
import type { Sort } from "../../model/shown_rows";

const INDENT_PX = 14;
/** Least width of a column. */
const LEAST_PX = 36;

function cellClass({ numeric, isTree }: RowColumn): string {
  return `row-table-cell cut ${numeric ? "num" : ""} ${isTree === true ? "is-tree" : ""}`;
}

export function Heading(props: {
  readonly column: RowColumn;
  readonly sort: Sort | null;
  readonly onSort: ((key: string) => void) | undefined;
  /** null: as usual. */
  readonly onWidth: (px: number | null, isDone: boolean) => void;
}) {
  const { column, sort, onSort, onWidth } = props;
  const draggedPx = useRef<number | null>(null);
  const { key, title, values, sortable = values !== undefined } = column;
  const sorted = sort?.key === key;
  const direction = sort?.descending === true ? "descending" : "ascending";
  const content = (
    <>
      {column.swatch !== undefined && <Swatch colour={column.swatch} />}
      {title}
      {sorted && <span aria-hidden="true">{sort.descending ? " ▼" : " ▲"}</span>}
    </>
  );
  return (
    <span
      role="columnheader"
      class={cellClass(column)}
      title={column.hint ?? title}
      aria-sort={sorted ? direction : "none"}
    >
      {sortable && onSort !== undefined ? (
        <button type="button" class="row-table-title cut" onClick={() => onSort(key)}>
          {content}
        </button>
      ) : (
        <span class="row-table-title cut">{content}</span>
      )}
      <span
        class="row-table-edge"
        aria-hidden="true"
        title="Drag to set the width"
        onPointerDown={(event) => {
          event.preventDefault();
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={({ currentTarget, pointerId, clientX }) => {
          const heading = currentTarget.parentElement;
          if (heading === null || !currentTarget.hasPointerCapture(pointerId)) return;
          const px = clientX - heading.getBoundingClientRect().left;
          draggedPx.current = Math.max(LEAST_PX, Math.round(px));
          onWidth(draggedPx.current, false);
        }}
        onPointerUp={() => {
          if (draggedPx.current !== null) onWidth(draggedPx.current, true);
          draggedPx.current = null;
        }}
        onDblClick={() => onWidth(null, true)}
      />
    </span>
  );
}

export function Cell(props: {
  readonly column: RowColumn;
  readonly cell: RowCell;
  /** Only in the column of the tree. */
  readonly node: TreeRow | undefined;
  readonly onToggle: () => void;
}) {
  const { column, cell, node, onToggle } = props;
  const {
    bar,
    swatch,
    note = "",
    tone,
    text,
    tail,
    content = cut({ text, tail }),
  } = cell;
  return (
    <span
      role="gridcell"
      class={`${cellClass(column)} ${cell.isCause === true ? "is-cause" : ""}`}
      title={cell.title ?? text}
      style={node && { paddingLeft: `${node.depth * INDENT_PX}px` }}
    >
      {node !== undefined && <Toggle node={node} onToggle={onToggle} />}
      {swatch !== undefined && <Swatch colour={swatch} />}
      {tone === undefined ? content : <span class={`tone-${tone}`}>{content}</span>}
      {note !== "" && <span class="quiet"> {note}</span>}
      {bar !== undefined && bar.share !== 0 && (
        <span
          class="row-table-bar"
          style={{
            left: percent(bar.from ?? 0),
            width: barWidth(percent(bar.share)),
            background: bar.colour,
          }}
        />
      )}
    </span>
  );
}

function percent(share: number): string {
  return `${Math.min(100, Math.max(0, share * 100))}%`;
}

/** Bars below 3 px are not drawn. */
function barWidth(share: string): string {
  return `clamp(0px, (${share} - 3px) * 999, ${share})`;
}

function Swatch({ colour }: { readonly colour: string }) {
  return <span class="swatch" style={{ background: colour }} />;
}

/** Not a tab stop: arrow keys do the same, and there may be thousands. */
function Toggle(props: { readonly node: TreeRow; readonly onToggle: () => void }) {
  const { numChildren, expanded } = props.node;
  if (numChildren === 0) return <span class="row-table-toggle" />;
  return (
    <button
      type="button"
      class={`row-table-toggle ${expanded ? "is-open" : ""}`}
      tabIndex={-1}
      aria-label={expanded ? "Collapse" : "Expand"}
      onClick={(event) => {
        event.stopPropagation();
        props.onToggle();
      }}
    >
      <Icon name="right" sizePx={12} />
    </button>
  );
}
