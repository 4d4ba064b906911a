/** Tables as routes declare them: columns, cells, order, search and files, all from there. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { ColumnUnit, TableColumn, TableRows } from "../../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { categoryLabel } from "../../../model/category";
import type { Origin } from "../../../model/words/origin";
import { ExportMenu } from "../../../widgets/export/export_menu";
import {
  absentCell,
  barOf,
  bytesCell,
  countCell,
  durationCell,
  tableOf,
} from "../../../widgets/row_table/columns";
import { headingWidth } from "../../../widgets/row_table/headings";
import {
  RowTable,
  type RowCell,
  type RowColumn,
  type RowTableProps,
} from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import type { ViewProps } from "../../shared/view_props";
import { familyColour, type WorkKind } from "./family_colours";
import { nameCells } from "./kernel_name";

type NumberUnit = Exclude<ColumnUnit, "text" | "name" | "category">;
type Cells = (value: number, unit: ByteUnit) => RowCell;

const CELLS: Readonly<Record<NumberUnit, Cells>> = {
  count: countCell,
  rank: (rank) => ({ text: String(rank) }),
  ms: durationCell,
  us: (us) => durationCell(us / 1e3),
  seconds: (seconds) => durationCell(seconds * 1e3),
  excess_seconds: (seconds) => ({
    text: `${seconds > 0 ? "+" : ""}${formatSeconds(seconds)}`,
  }),
  bytes: bytesCell,
  bytes_per_second: (value, unit) => ({
    text: `${formatBytes(value, unit)}/s`,
    title: `${value} bytes/s`,
  }),
  share: (share) => ({
    text: `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`,
    title: `${100 * share} %`,
  }),
  ratio: (value) => ({ text: value.toFixed(2), title: String(value) }),
  yes: (value) => ({ text: value === 1 ? "yes" : "no" }),
};

const TEXT_WIDTHS = { name: "minmax(160px, 2fr)", text: "minmax(96px, 1fr)" };
const BAR_PX = 96;

/** Colours by the names of `TableColumn.bar` that are no kinds of work. */
export type Colours = Readonly<Record<string, string>>;

/** The columns that are seen, and those that are in files alone. */
export function columnsOf(
  table: TableRows,
  { theme, byteUnit }: Pick<ViewProps, "theme" | "byteUnit">,
  colours: Colours = {},
): readonly RowColumn[] {
  const colourOf = (name: string): string =>
    colours[name] ?? familyColour(theme, name as WorkKind);
  return table.columns.map((column): RowColumn => {
    const { key, title, unit, texts, numbers, notes, hints } = column;
    const words = { key, title, hint: column.help, sortable: column.sorts };
    const isText = unit === "text" || unit === "name" || unit === "category";
    const named = unit === "name" ? nameCells(texts) : (text: string) => ({ text });
    const absent = (): RowCell => ({
      ...absentCell(column.absent),
      ...(column.absentText === "" ? {} : { text: column.absentText }),
    });
    const more = (row: number): Partial<RowCell> => ({
      ...(notes.length > 0 ? { note: notes[row] ?? "" } : {}),
      ...(hints.length > 0 ? { title: hints[row] ?? "" } : {}),
    });
    const textCell = (row: number): RowCell => {
      const text = texts[row] ?? "";
      if (text === "" && column.absent !== "") return { ...absent(), ...more(row) };
      const label = unit === "category" ? categoryLabel(text) : text;
      const cell = unit === "category" ? { text: label } : named(label, row);
      const swatch = unit === "category" ? { swatch: colourOf(text) } : {};
      return { ...cell, ...swatch, ...more(row) };
    };
    const numberCell = (row: number): RowCell => {
      const value = numbers[row] ?? NaN;
      if (Number.isNaN(value)) return absent();
      const cell = CELLS[unit as NumberUnit](value, byteUnit);
      const { sum, bar } = column;
      if (sum !== null && sum > 0) {
        const share = ((100 * value) / sum).toFixed(1);
        Object.assign(cell, { title: `${cell.title}: ${share} % ${column.shareOf}` });
      }
      if (bar === "") return { ...cell, ...more(row) };
      const colour = colourOf(bar === "row" ? (table.colours[row] ?? "other") : bar);
      return { ...cell, ...more(row), bar: barOf(value, column.longest, colour) };
    };
    if (isText) {
      const width = TEXT_WIDTHS[unit === "name" ? "name" : "text"];
      return { ...words, width, numeric: false, values: texts, cell: textCell };
    }
    const px = Math.max(headingWidth(title, false), column.bar === "" ? 0 : BAR_PX);
    const ascends = unit === "rank";
    const width = `${px}px`;
    return {
      ...words,
      width,
      numeric: true,
      ascends,
      values: numbers,
      cell: numberCell,
    };
  });
}

/** Rows of which some text holds each word, or whose rank it is; null: all do. */
export function rowsHolding(
  { columns, numRows }: TableRows,
  text: string,
): ReadonlySet<number> | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const holds = (one: TableColumn, row: number, word: string): boolean =>
    one.unit === "rank"
      ? String(one.numbers[row]) === word
      : (one.texts[row] ?? "").toLowerCase().includes(word);
  const rows = Array.from({ length: numRows }, (_, row) => row);
  return new Set(
    rows.filter((row) =>
      words.every((word) => columns.some((one) => holds(one, row, word))),
    ),
  );
}

export interface AnswerTableProps extends Pick<
  RowTableProps,
  "label" | "empty" | "selected" | "onSelect" | "onHover" | "heightPx"
> {
  readonly view: ViewProps;
  readonly table: TableRows;
  /** The URL's word for its order. */
  readonly word: string;
  readonly colours?: Colours;
  /** Rows that are shown; null: all. */
  readonly kept?: ReadonlySet<number> | null;
  /** Of these the first. */
  readonly most?: number;
  /** What is said above it. */
  readonly head: ComponentChildren;
  /** Files of it: what they are called, and of what they are. */
  readonly file: { readonly name: string; readonly about?: () => object };
  readonly origin: Origin;
  /** Between the head and the table. */
  readonly children?: ComponentChildren;
}

export function AnswerTable(props: AnswerTableProps) {
  const { view, table, word, colours, kept = null, most = Infinity, file } = props;
  const { theme, byteUnit } = view;
  const columns = useMemo(
    () => columnsOf(table, { theme, byteUnit }, colours),
    [table, theme, byteUnit, colours],
  );
  const usual = {
    key: table.usual.replace("-", ""),
    descending: !table.usual.startsWith("-"),
  };
  const { rows, ...sorting } = useSort(
    columns,
    table.numRows,
    usual,
    view.params.get(word),
    (sort) => view.setParams({ [word]: sort }),
  );
  const shown = useMemo(
    () => rows.filter((row) => kept?.has(row) ?? true).slice(0, most),
    [rows, kept, most],
  );
  return (
    <section aria-label={props.label}>
      <div class="panel-head">
        {props.head}
        <ExportMenu
          subject={`the table of ${file.name}`}
          source={{
            origin: props.origin,
            name: file.name,
            table: () => tableOf(columns, shown),
            about: () => ({ ...file.about?.() }),
          }}
        />
      </div>
      {props.children}
      <RowTable
        {...sorting}
        label={props.label}
        columns={columns.filter(({ title }) => title !== "")}
        rows={shown}
        selected={props.selected ?? null}
        {...(props.onSelect === undefined ? {} : { onSelect: props.onSelect })}
        {...(props.onHover === undefined ? {} : { onHover: props.onHover })}
        empty={props.empty}
        heightPx={props.heightPx}
      />
    </section>
  );
}
