/** Columns as they are declared (`TableColumn`), and as a table draws them. */

import type { TableColumn, TableRows } from "../../../api/types.gen";
import { categoryLabel, divergingColours } from "../../../model/category";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import { parseRankSet } from "../../../model/words/rank_set";
import { partColour } from "../../../render/palette";
import { withTail } from "../../../widgets/cut_text/cut_text";
import {
  absentCell,
  barOf,
  changeBar,
  type RowCell,
  type RowColumn,
} from "../../../widgets/row_table/columns";
import { columnWidth } from "../../../widgets/row_table/widths/widths";
import type { ViewProps } from "../view_props";
import { nameCells } from "./kernel_name";
import { CELLS, CHANGES, isTextUnit, type NumberUnit } from "./units";

/** Colours by names in `TableColumn.bar` that are not kinds of work. */
export type Colours = Readonly<Record<string, string>>;

export interface ColumnLook {
  readonly colours?: Colours | undefined;
  /** Texts, or notes beside values, that a finding blames. */
  readonly culprits?: ReadonlySet<string> | undefined;
  /** Of columns of stacks; null: still loading. */
  readonly stacks?: CallStacks | null | undefined;
  /** "#rrggbb" beside headings, by column. */
  readonly swatches?: Colours | undefined;
  /** Cells that the page draws itself, by column. */
  readonly cells?: Readonly<Record<string, (row: number) => RowCell>> | undefined;
  /** CSS grid widths that stay where there is little room, by column. */
  readonly widths?: Readonly<Record<string, string>> | undefined;
  /** Tooltips that the page words itself; "": the usual one. */
  readonly titles?: ((key: string, row: number) => string) | undefined;
}

/** A table of the server's columns, whose values the browser alone knows. */
export function filled(
  header: TableRows,
  numRows: number,
  values: Readonly<Record<string, Partial<TableColumn>>>,
): TableRows {
  const columns = header.columns.map((column) => ({
    ...column,
    ...values[column.key],
  }));
  return { ...header, columns, numRows, numAll: numRows };
}

/** Visible columns, and those only in files. */
export function columnsOf(
  table: TableRows,
  { theme, byteUnit }: Pick<ViewProps, "theme" | "byteUnit">,
  {
    colours = {},
    culprits,
    stacks,
    swatches = {},
    cells = {},
    widths = {},
    titles,
  }: ColumnLook = {},
): readonly RowColumn[] {
  const colourOf = (name: string): string => colours[name] ?? partColour(theme, name);
  const hasTexts = table.columns.some(
    ({ unit, title }) => isTextUnit(unit) && title !== "",
  );
  return withStackTexts(table, stacks).columns.map((column): RowColumn => {
    const { key, title, unit, texts, numbers, notes, hints, bar } = column;
    const common = {
      key,
      title,
      hint: column.help || title,
      sortable: column.sorts,
      keepsWidth: key in widths,
    };
    const isText = isTextUnit(unit);
    const named =
      unit === "name"
        ? nameCells(texts)
        : unit === "stack"
          ? withTail
          : (text: string) => ({ text });
    const hintOf = (row: number): string => {
      const own =
        unit === "stack" ? stacks?.text(numbers[row] ?? -1) : titles?.(key, row);
      return own === undefined || own === "" ? (hints[row] ?? "") : own;
    };
    const absent = (): RowCell => ({
      ...absentCell(column.absent),
      ...(column.absentText === "" ? {} : { text: column.absentText }),
    });
    const more = (row: number): Partial<RowCell> => ({
      ...(notes.length > 0 ? { note: notes[row] ?? "" } : {}),
      ...(hintOf(row) ? { title: hintOf(row) } : {}),
      ...(unit === "problem" ? { tone: "bad" } : {}),
      ...([texts[row], notes[row]].some((text = "") => culprits?.has(text))
        ? { isCause: true }
        : {}),
    });
    const unitOf = (row: number): NumberUnit => {
      const own = columnOf(table, "unit")?.texts[row] as NumberUnit;
      if (unit === "change_of_row") return CHANGES[own] ?? "change";
      return unit === "of_row" ? own : (unit as NumberUnit);
    };
    const barColour = (row: number): string =>
      colourOf(bar === "row" ? (table.colours[row] ?? "other") : bar);
    const textCell = (row: number): RowCell => {
      const text = texts[row] ?? "";
      if (text === "" && column.absent !== "") return { ...absent(), ...more(row) };
      if (unit === "category")
        return { text: categoryLabel(text), swatch: colourOf(text), ...more(row) };
      const isPlain =
        bar === "" ||
        table.colours[row] === "" ||
        (bar === "row" && table.colours.length === 0);
      const swatch = isPlain ? {} : { swatch: barColour(row) };
      return { ...named(text, row), ...swatch, ...more(row) };
    };
    const numberCell = (row: number): RowCell => {
      const value = numbers[row] ?? NaN;
      if (Number.isNaN(value)) return { ...absent(), ...more(row) };
      const cell = CELLS[unitOf(row)](value, byteUnit);
      const { sum } = column;
      if (sum !== null && sum > 0) {
        const share = ((100 * value) / sum).toFixed(1);
        Object.assign(cell, { title: `${cell.title}: ${share} % ${column.shareOf}` });
      }
      if (bar === "change" || bar === "difference") {
        const change = changeBar(value, column.longest, divergingColours(theme));
        return { ...cell, ...more(row), bar: change };
      }
      if (bar === "") return { ...cell, ...more(row) };
      return {
        ...cell,
        ...more(row),
        ...(value === 0 ? { tone: "quiet" } : {}),
        bar: barOf(value, column.longest, barColour(row)),
      };
    };
    if (isText) {
      const width = widths[key] ?? columnWidth(unit === "name" ? "name" : "text");
      return {
        ...common,
        width,
        numeric: false,
        values: numbers.length > 0 && unit !== "stack" ? numbers : texts,
        exported: { name: key, values: texts },
        cell: cells[key] ?? textCell,
      };
    }
    const isLong = unit === "size_class" || column.bar + notes.join("") !== "";
    const swatch = swatches[key];
    return {
      ...common,
      ...(swatch === undefined ? {} : { swatch }),
      // Texts take the free width; without texts, numbers share it.
      width: columnWidth(
        unit === "instant" ? "instant" : isLong ? "bar" : "number",
        title,
        swatch !== undefined,
        !hasTexts,
      ),
      numeric: true,
      ascends: unit === "rank",
      values: column.bar === "difference" ? numbers.map(Math.abs) : numbers,
      exported: { name: key, values: numbers },
      cell: numberCell,
    };
  });
}

/** A row of a part of a table; null: it has not arrived. */
export type PartOf = (
  row: number,
) => { readonly table: TableRows; readonly row: number } | null;

/** Columns of a table whose rows arrive in parts: the server alone could sort them. */
export function pagedColumns(
  header: TableRows,
  partOf: PartOf,
  view: Pick<ViewProps, "theme" | "byteUnit">,
  look: ColumnLook,
): readonly RowColumn[] {
  const drawn = new Map<TableRows, readonly RowColumn[]>();
  const columnsOfPart = (table: TableRows): readonly RowColumn[] => {
    const columns = drawn.get(table) ?? columnsOf(table, view, look);
    drawn.set(table, columns);
    return columns;
  };
  return columnsOf(header, view, look).map(
    ({ key, title, hint = title, numeric, width }, place): RowColumn => ({
      key,
      title,
      hint,
      numeric,
      width,
      cell: (row) => {
        const part = partOf(row);
        if (part === null) return { text: "…", tone: "quiet" };
        return columnsOfPart(part.table)[place]?.cell(part.row) ?? { text: "" };
      },
    }),
  );
}

/** Stacks are sent by number: the text is their line of code. */
export function withStackTexts(
  table: TableRows,
  stacks: CallStacks | null | undefined,
): TableRows {
  if (table.columns.every(({ unit }) => unit !== "stack")) return table;
  const columns = table.columns.map((column) => {
    if (column.unit !== "stack") return column;
    const texts = Array.from(
      column.numbers,
      (stack) => stacks?.stackLabel(stack) ?? "…",
    );
    return { ...column, texts };
  });
  return { ...table, columns };
}

export function columnOf(table: TableRows, key: string): TableColumn | undefined {
  return table.columns.find((column) => column.key === key);
}

/** Empty without the column. */
export function numbersOf(table: TableRows, key: string): Float64Array {
  return columnOf(table, key)?.numbers ?? new Float64Array();
}

/** Rows whose text contains each word, or whose rank it names; null: all. */
export function rowsHolding(
  { columns, numRows }: TableRows,
  text: string,
): ReadonlySet<number> | null {
  const typedWords = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (typedWords.length === 0) return null;
  const holds = (column: TableColumn, row: number, word: string): boolean => {
    const { texts, hints } = column;
    if (column.unit !== "rank")
      return `${texts[row] ?? ""} ${hints[row] ?? ""}`.toLowerCase().includes(word);
    // An unfinished range names its first rank.
    const named = parseRankSet(word.replace(/[-,]+$/, ""));
    return named.ok && named.ranks.includes(column.numbers[row] ?? NaN);
  };
  const rows = Array.from({ length: numRows }, (_, row) => row);
  return new Set(
    rows.filter((row) =>
      typedWords.every((word) => columns.some((column) => holds(column, row, word))),
    ),
  );
}
