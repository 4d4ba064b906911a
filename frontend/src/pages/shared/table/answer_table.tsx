import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { ColumnUnit, TableColumn, TableRows, Unit } from "../../../api/types.gen";
import {
  formatBytes,
  formatInteger,
  threeDigits,
  type ByteUnit,
} from "../../../base/bytes";
import { parseRankSet } from "../../../model/words/rank_set";
import { categoryLabel, divergingColours } from "../../../model/category";
import { originOf } from "../../../model/words/origin";
import {
  formatQuantity,
  formatSigned,
  formatSignedExact,
} from "../../../model/words/quantity";
import { ExportMenu, type ExportShell } from "../../../widgets/export/export_menu";
import { useWidth } from "../../../widgets/plot/canvas";
import {
  absentCell,
  barOf,
  bytesCell,
  changeBar,
  durationCell,
  tableOf,
  type RowCell,
  type RowColumn,
} from "../../../widgets/row_table/columns";
import { headingWidth, inTwoLines } from "../../../widgets/row_table/headings";
import { RowTable, type RowTableProps } from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import { SearchBox, type SearchBoxProps } from "../controls/search_box";
import type { ViewProps } from "../view_props";
import { partColour } from "../../../render/palette";
import { nameCells } from "./kernel_name";

const TEXT_UNITS = ["text", "name", "category", "problem"] as const;

type NumberUnit = Exclude<
  ColumnUnit,
  (typeof TEXT_UNITS)[number] | "of_row" | "change_of_row"
>;
type Cells = (value: number, unit: ByteUnit) => RowCell;

function signedCell(of: Unit): Cells {
  return (value, unit) => ({
    text: formatSigned(value, of, unit),
    title: formatSignedExact(value, of),
  });
}

/** Above this a change is shown as a factor, */
const MANY_TIMES = 10;
/** and above this not at all: the values say more. */
const MOST_TIMES = 100;

/** Of a share of what it was; infinite where one side alone has it. */
export function changeText(share: number): string {
  if (!Number.isFinite(share)) return share > 0 ? "new" : "gone";
  if (share >= MOST_TIMES) return "";
  if (share >= MANY_TIMES) return `${threeDigits(1 + share)} ×`;
  return `${share > 0 ? "+" : ""}${threeDigits(100 * share)} %`;
}

const CELLS: Readonly<Record<NumberUnit, Cells>> = {
  count: (value) => ({ text: formatQuantity(value, "count") }),
  rank: (rank) => ({ text: String(rank) }),
  ms: durationCell,
  us: (us) => durationCell(us / 1e3),
  seconds: (seconds) => durationCell(seconds * 1e3),
  excess_seconds: signedCell("seconds"),
  bytes: bytesCell,
  change: signedCell("count"),
  change_bytes: signedCell("bytes"),
  change_share: (share) => ({ text: changeText(share), title: `${100 * share} %` }),
  bytes_per_second: (value, unit) => ({
    text: `${formatBytes(value, unit)}/s`,
    title: `${value} bytes/s`,
  }),
  share: (share) => ({
    text: `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`,
    title: `${100 * share} %`,
  }),
  ratio: (value) => ({ text: value.toFixed(2), title: String(value) }),
  flops: (flops) => ({
    text: formatFlops(flops),
    title: flops.toLocaleString("en-US"),
  }),
  yes: (value) => ({ text: value === 1 ? "yes" : "no" }),
  errors: (num) => {
    const count = formatInteger(num);
    return num > 0 ? { text: `✖ ${count}`, tone: "bad" } : { text: count };
  },
};

/** Of the change of what has this unit. */
const CHANGES: Readonly<Partial<Record<ColumnUnit, NumberUnit>>> = {
  bytes: "change_bytes",
  seconds: "excess_seconds",
};

/** `738 M`. */
export function formatFlops(flops: number): string {
  const at = flops < 999.5 ? 0 : Math.floor(Math.log10(flops * 1.0005) / 3);
  return `${threeDigits(flops / 1000 ** at)} ${"KMGTPE".charAt(at - 1)}`.trim();
}

const TEXT_WIDTHS = { name: "minmax(160px, 2fr)", text: "minmax(96px, 1fr)" };
/** Of a text's least width: below it, numbers become narrower first. */
const READABLE_SHARE = 1.75;
const NUMBER_PX = 60;
const BAR_PX = 96;
const NARROW_BAR_PX = 76;
/** Between columns, and beside the outer ones. */
const GAP_PX = 12;
const USUAL_PX = 360;
/** Shorter tables need no search. */
const SEARCHED_FROM = 12;

function isTextUnit(unit: ColumnUnit): boolean {
  return TEXT_UNITS.some((one) => one === unit);
}

/** Colours by names in `TableColumn.bar` that are not kinds of work. */
export type Colours = Readonly<Record<string, string>>;

/** Visible columns, and those only in files. */
export function columnsOf(
  table: TableRows,
  { theme, byteUnit }: Pick<ViewProps, "theme" | "byteUnit">,
  colours: Colours = {},
  culprits?: ReadonlySet<string>,
): readonly RowColumn[] {
  const colourOf = (name: string): string => colours[name] ?? partColour(theme, name);
  const hasTexts = table.columns.some(
    ({ unit, title }) => isTextUnit(unit) && title !== "",
  );
  return table.columns.map((column): RowColumn => {
    const { key, title, unit, texts, numbers, notes, hints, bar } = column;
    const words = { key, title, hint: column.help, sortable: column.sorts };
    const isText = isTextUnit(unit);
    const named = unit === "name" ? nameCells(texts) : (text: string) => ({ text });
    const absent = (): RowCell => ({
      ...absentCell(column.absent),
      ...(column.absentText === "" ? {} : { text: column.absentText }),
    });
    const more = (row: number): Partial<RowCell> => ({
      ...(notes.length > 0 ? { note: notes[row] ?? "" } : {}),
      ...(hints.length > 0 ? { title: hints[row] ?? "" } : {}),
      ...(unit === "problem" ? { tone: "bad" } : {}),
      ...(culprits?.has(texts[row] ?? "") === true ? { isCause: true } : {}),
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
      const isPlain = bar === "" || table.colours[row] === "";
      const swatch = isPlain ? {} : { swatch: barColour(row) };
      return { ...named(text, row), ...swatch, ...more(row) };
    };
    const numberCell = (row: number): RowCell => {
      const value = numbers[row] ?? NaN;
      if (Number.isNaN(value)) return absent();
      const cell = CELLS[unitOf(row)](value, byteUnit);
      const { sum } = column;
      if (sum !== null && sum > 0) {
        const share = ((100 * value) / sum).toFixed(1);
        Object.assign(cell, { title: `${cell.title}: ${share} % ${column.shareOf}` });
      }
      if (bar === "change" || bar === "difference") {
        const change = changeBar(value, column.longest, divergingColours(theme));
        return { ...cell, bar: change };
      }
      if (bar === "") return { ...cell, ...more(row) };
      return {
        ...cell,
        ...more(row),
        bar: barOf(value, column.longest, barColour(row)),
      };
    };
    if (isText) {
      const width = TEXT_WIDTHS[unit === "name" ? "name" : "text"];
      return { ...words, width, numeric: false, values: texts, cell: textCell };
    }
    const heading = headingWidth(title, false);
    const px = Math.max(
      heading,
      column.bar + notes.join("") === "" ? NUMBER_PX : BAR_PX,
    );
    const ascends = unit === "rank";
    // Texts take the free width; without texts, numbers share it.
    const width = hasTexts ? `${px}px` : `minmax(${px}px, 1fr)`;
    return {
      ...words,
      width,
      numeric: true,
      ascends,
      values: column.bar === "difference" ? numbers.map(Math.abs) : numbers,
      exported: { name: key, values: numbers },
      cell: numberCell,
    };
  });
}

function leastPx({ width }: RowColumn): number {
  return Number(/\d+/.exec(width)?.[0] ?? 0);
}

/** Headings in two lines and shorter bars where not all columns fit. */
function fittingIn(widthPx: number, columns: readonly RowColumn[]) {
  const shown = columns.filter(({ title }) => title !== "");
  const wished = (one: RowColumn) => leastPx(one) * (one.numeric ? 1 : READABLE_SHARE);
  const needed = shown.reduce((sum, one) => sum + wished(one) + GAP_PX, GAP_PX);
  if (widthPx === 0 || needed <= widthPx) return columns;
  return columns.map((column): RowColumn => {
    if (!column.numeric) return column;
    const title = inTwoLines(column.title);
    const px = Math.max(headingWidth(title, false), NARROW_BAR_PX);
    const width = column.width.replace(/\d+/, `${Math.min(px, leastPx(column))}`);
    return { ...column, title, width };
  });
}

export function columnOf(table: TableRows, key: string): TableColumn | undefined {
  return table.columns.find((one) => one.key === key);
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
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const holds = (one: TableColumn, row: number, word: string): boolean => {
    const { texts, hints } = one;
    if (one.unit !== "rank")
      return `${texts[row] ?? ""} ${hints[row] ?? ""}`.toLowerCase().includes(word);
    // An unfinished range names its first rank.
    const named = parseRankSet(word.replace(/[-,]+$/, ""));
    return named.ok && named.ranks.includes(one.numbers[row] ?? NaN);
  };
  const rows = Array.from({ length: numRows }, (_, row) => row);
  return new Set(
    rows.filter((row) =>
      words.every((word) => columns.some((one) => holds(one, row, word))),
    ),
  );
}

export interface AnswerTableProps extends Partial<
  Pick<RowTableProps, "selected" | "onSelect" | "onHover" | "isMarked" | "heightPx">
> {
  readonly view: ViewProps;
  readonly table: TableRows;
  /** URL word of the order. */
  readonly word: string;
  readonly colours?: Colours;
  /** Columns of the page, before those of the answer. */
  readonly before?: readonly RowColumn[];
  readonly culprits?: ReadonlySet<string>;
  readonly text?: string;
  /** Search box of long tables, and its URL word. */
  readonly find?: Pick<SearchBoxProps, "commands" | "label" | "placeholder"> & {
    readonly word: string;
  };
  readonly shows?: ((row: number) => boolean) | undefined;
  /** Shows only the first of these rows. */
  readonly most?: number;
  readonly head?: ComponentChildren;
  readonly about?: Readonly<Record<string, unknown>>;
  readonly shell?: ExportShell;
  readonly children?: ComponentChildren;
}

export function AnswerTable(props: AnswerTableProps) {
  const { view, table, word, colours, find, most = Infinity, about = {} } = props;
  const { before = [], culprits, shows } = props;
  const { head, children, heightPx = USUAL_PX, ...rest } = props;
  const { theme, byteUnit, params, setParams } = view;
  const { title, summary, numRows, usual } = table;
  const text = props.text ?? (find && params.get(find.word)) ?? "";
  const box = useRef<HTMLElement>(null);
  const widthPx = useWidth(box);
  const columns = useMemo(() => {
    const own = columnsOf(table, { theme, byteUnit }, colours, culprits);
    return fittingIn(widthPx, [...before, ...own]);
  }, [table, theme, byteUnit, colours, culprits, widthPx, ...before]);
  const { rows, ...sorting } = useSort(
    columns,
    numRows,
    { key: usual.replace("-", ""), descending: !usual.startsWith("-") },
    params.get(word),
    (sort) => setParams({ [word]: sort }),
  );
  const held = useMemo(() => rowsHolding(table, text), [table, text]);
  const shown = useMemo(() => {
    const isShown = (row: number) => held?.has(row) !== false && shows?.(row) !== false;
    return rows.filter(isShown).slice(0, most);
  }, [rows, held, shows, most]);
  return (
    <section aria-label={title} ref={box}>
      <div class="panel-head">
        {head ?? (
          <>
            <h3>{title}</h3>
            <span class="quiet">{summary}</span>
          </>
        )}
        {find !== undefined && (text !== "" || numRows > SEARCHED_FROM) && (
          <>
            <SearchBox
              {...find}
              text={text}
              onText={(value) => setParams({ [find.word]: value || null })}
            />
            <span class="quiet" role="status">
              {shown.length < numRows &&
                `${formatInteger(shown.length)} of ${formatInteger(numRows)}`}
            </span>
          </>
        )}
        <ExportMenu
          shell={props.shell}
          subject={`the table: ${title}`}
          source={{
            origin: originOf(view.run),
            name: title.toLowerCase(),
            table: () => tableOf(columns, shown),
            about: () => about,
          }}
        />
      </div>
      {children}
      <RowTable
        {...rest}
        {...sorting}
        label={title}
        columns={columns.filter((one) => one.title !== "")}
        rows={shown}
        empty={text === "" ? table.empty : `No row holds “${text}”.`}
        heightPx={heightPx}
      />
    </section>
  );
}
