/**
 * All ranks with their peaks, sortable, in a virtual table: four thousand rows scroll
 * as forty do. A row opens its rank, the pin keeps it drawn.
 */

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  Tabulator,
  type CellComponent,
  type ColumnDefinition,
  type RowComponent,
} from "tabulator-tables";
import type { RankStrip } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import type { Origin } from "../../model/words/origin";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { ExportMenu } from "../export/export_menu";
import { Icon } from "../icon/icon";
import { makeHeadersFocusable, span } from "../tabulator/elements";
import { useRowPressed } from "../tabulator/use_pressed";
import "./rank_table.css";
import { compareAbsentLow, rankRows, rowsTable, type RankRow } from "./rows";

export interface RankTableProps {
  readonly strip: RankStrip;
  /** The ranks shown; null shows all. */
  readonly ranks: ReadonlySet<number> | null;
  readonly pinned: readonly number[];
  readonly onPin: (rank: number) => void;
  /** A click on a row. */
  readonly onPick: (rank: number) => void;
  readonly byteUnit: ByteUnit;
  /** The most it may take; fewer rows take less. */
  readonly heightPx: number;
  readonly origin: Origin;
}

const HELP_GROWTH =
  "Theil–Sen slope over the steps: the median of the slopes between all pairs, behind the warm-up (the first tenth, at least 5 steps). Single spikes do not move it; – where there are too few steps.";
const HELP_RETRIES =
  "Times the allocator had to free its cache and try again; each makes a step slow";
const ROW_PX = 24;
const ROW_BORDERED_PX = ROW_PX + 1;
/** The heading row and the frame. */
const HEAD_PX = 36;

/** Tabulator speaks of rows by their index, which is the rank. */
type RowOf = (of: CellComponent | RowComponent) => RankRow | undefined;

function pinButton({ rank, pinned }: RankRow): HTMLElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "rank-pin";
  button.setAttribute("aria-pressed", String(pinned));
  button.setAttribute("aria-label", `${pinned ? "Unpin" : "Pin"} rank ${rank}`);
  button.title = pinned ? "No longer draw this rank always" : "Always draw this rank";
  render(<Icon name="pin" sizePx={14} />, button);
  return button;
}

function shareBar({ share }: RankRow): HTMLElement {
  if (!Number.isFinite(share)) return span("–");
  const cellBar = document.createElement("span");
  cellBar.className = share >= 0.97 ? "rank-share is-full" : "rank-share";
  const bar = document.createElement("span");
  bar.style.width = `${Math.min(share, 1) * 100}%`;
  cellBar.append(bar, span(`${(share * 100).toFixed(1)} %`));
  return cellBar;
}

/** Reads the unit at drawing time, so that switching it needs no new table. */
function columnsOf(
  rowOf: RowOf,
  byteUnit: () => ByteUnit,
  onPin: (rank: number) => void,
): ColumnDefinition[] {
  const drawn =
    (draw: (row: RankRow) => HTMLElement) =>
    (cell: CellComponent): HTMLElement => {
      const row = rowOf(cell);
      return row === undefined ? span("") : draw(row);
    };
  const headed = (
    title: string,
    hint: string,
  ): Pick<ColumnDefinition, "title" | "titleFormatter"> => ({
    title,
    titleFormatter: () => span(title, hint),
  });
  const number = (
    title: string,
    hint: string,
    field: keyof RankRow,
    text: (row: RankRow) => HTMLElement,
    widthGrow = 1,
  ): ColumnDefinition => ({
    ...headed(title, hint),
    field,
    hozAlign: "right",
    headerHozAlign: "right",
    headerSortStartingDir: "desc",
    minWidth: 84,
    widthGrow,
    sorter: (a: unknown, b: unknown) => compareAbsentLow(Number(a), Number(b)),
    formatter: drawn(text),
  });
  const count = (value: number): HTMLElement =>
    span(Number.isFinite(value) ? formatInteger(value) : "–");
  return [
    {
      ...headed("Pin", "Ranks that are always drawn"),
      field: "pinned",
      width: 64,
      hozAlign: "center",
      headerHozAlign: "center",
      headerSortStartingDir: "desc",
      sorter: (a: unknown, b: unknown) => Number(a) - Number(b),
      formatter: drawn(pinButton),
      cellClick: (event: Event, cell: CellComponent) => {
        // The row hears of the click too: it must not open the rank as well.
        event.preventDefault();
        const row = rowOf(cell);
        if (row !== undefined) onPin(row.rank);
      },
    },
    {
      ...number("Rank", "A click on a row opens the rank", "rank", (row) =>
        span(String(row.rank), undefined, "rank-link"),
      ),
      headerSortStartingDir: "asc",
      minWidth: 72,
    },
    {
      ...headed("Host", "Where the rank runs"),
      field: "host",
      minWidth: 90,
      widthGrow: 2,
      formatter: drawn((row) => span(row.host, row.host)),
    },
    number("Peak", "The highest value of any of its steps", "peakBytes", (row) =>
      span(
        formatQuantity(row.peakBytes, "bytes", byteUnit()),
        formatExact(row.peakBytes, "bytes"),
      ),
    ),
    number("At step", "The step of its peak", "peakStep", (row) => count(row.peakStep)),
    {
      ...number(
        "Of capacity",
        "Peak ÷ what the device, or the host, has",
        "share",
        shareBar,
      ),
      minWidth: 120,
      widthGrow: 2,
    },
    {
      ...number("Growth/step", HELP_GROWTH, "growthBytesPerStep", (row) =>
        span(
          formatQuantity(row.growthBytesPerStep, "bytes", byteUnit()),
          formatExact(row.growthBytesPerStep, "bytes_per_step"),
        ),
      ),
      minWidth: 118,
    },
    number("Retries", HELP_RETRIES, "numAllocRetries", (row) =>
      count(row.numAllocRetries),
    ),
    number("OOMs", "Out-of-memory errors that were recorded", "numOoms", (row) =>
      row.numOoms > 0
        ? span(`✖ ${formatInteger(row.numOoms)}`, "Out of memory", "rank-bad")
        : count(row.numOoms),
    ),
    {
      ...number("Last step", "The last step it recorded", "lastStep", (row) =>
        count(row.lastStep),
      ),
      minWidth: 104,
    },
    {
      ...headed("Ended", "Lost: its recording was not closed"),
      field: "lost",
      minWidth: 84,
      sorter: (a: unknown, b: unknown) => Number(a) - Number(b),
      formatter: drawn((row) =>
        row.lost
          ? span(
              "⚠ lost",
              "No goodbye: killed, or its machine or disk was lost",
              "rank-bad",
            )
          : span(""),
      ),
    },
  ];
}

export function RankTable(props: RankTableProps) {
  const { strip, ranks, pinned, byteUnit } = props;
  const root = useRef<HTMLDivElement>(null);
  const [table, setTable] = useState<Tabulator | null>(null);
  const isPressed = useRowPressed(root);
  const rows = useMemo(() => rankRows(strip, ranks, pinned), [strip, ranks, pinned]);
  const wantedPx = Math.max(rows.length, 1) * ROW_BORDERED_PX + HEAD_PX;
  const heightPx = Math.min(props.heightPx, wantedPx);
  const byRank = useMemo(() => new Map(rows.map((row) => [row.rank, row])), [rows]);
  const latest = useRef({ props, rows, byRank, heightPx });
  latest.current = { props, rows, byRank, heightPx };
  const drawn = useRef({ rows, byteUnit });

  useEffect(() => {
    if (root.current === null) return;
    drawn.current = { rows: latest.current.rows, byteUnit };
    const rowOf: RowOf = (of) => {
      const row = "getRow" in of ? of.getRow() : of;
      return latest.current.byRank.get(Number(row.getIndex()));
    };
    const made = new Tabulator(root.current, {
      data: latest.current.rows,
      index: "rank",
      layout: "fitColumns",
      height: latest.current.heightPx,
      rowHeight: ROW_PX,
      placeholder: "No rank has recorded a step yet.",
      initialSort: [{ column: "peakBytes", dir: "desc" }],
      columns: columnsOf(
        rowOf,
        () => latest.current.props.byteUnit,
        (rank) => latest.current.props.onPin(rank),
      ),
      rowFormatter: (row) => {
        const isPinned = rowOf(row)?.pinned === true;
        row.getElement().classList.toggle("is-pinned", isPinned);
      },
    });
    made.on("tableBuilt", () => {
      makeHeadersFocusable(made);
      setTable(made);
    });
    made.on("rowClick", (event, row) => {
      const picked = rowOf(row);
      if (event.defaultPrevented || picked === undefined) return;
      latest.current.props.onPick(picked.rank);
    });
    return () => {
      made.destroy();
      setTable(null);
    };
  }, []);
  useEffect(() => {
    if (table === null || isPressed) return;
    const before = drawn.current;
    drawn.current = { rows, byteUnit };
    if (before.rows === rows && before.byteUnit === byteUnit) return;
    // Keeps the order chosen and the place scrolled to.
    void table.replaceData(rows);
  }, [table, rows, byteUnit, isPressed]);
  useEffect(() => table?.setHeight(heightPx), [table, heightPx]);

  return (
    <section class="rank-table grid" aria-label="Ranks">
      <div class="chart-bar">
        <h3>{rows.length === 1 ? "1 rank" : `${formatInteger(rows.length)} ranks`}</h3>
        <ExportMenu
          subject="the table of ranks"
          source={{
            origin: props.origin,
            name: "ranks",
            table: () => rowsTable(latest.current.rows),
            about: () => ({ peak_series: strip.peakSeries }),
          }}
        />
      </div>
      <div ref={root} />
    </section>
  );
}
