import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { TableRows } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { searchOf, type Sort } from "../../../model/shown_rows";
import { originOf } from "../../../model/words/origin";
import { ExportMenu, type ExportShell } from "../../../widgets/export/export_menu";
import { CopyMarkdownButton, Icon } from "../../../widgets/icon/icon";
import { Menu, type MenuItem } from "../../../widgets/menu/menu";
import { useWidth } from "../../../widgets/plot/canvas";
import { tableOf, type RowColumn } from "../../../widgets/row_table/columns";
import { rowsMarkdown } from "../../../widgets/row_table/markdown";
import { RowTable, type RowTableProps } from "../../../widgets/row_table/row_table";
import {
  useSort,
  useTree,
  type TreeOptions,
} from "../../../widgets/row_table/use_sort";
import { fittingIn, gapsOf } from "../../../widgets/row_table/widths/widths";
import { SearchBox, type SearchBoxProps } from "../controls/search_box";
import type { ViewProps } from "../view_props";
import {
  columnsOf,
  pagedColumns,
  rowsHolding,
  withStackTexts,
  type ColumnLook,
  type PartOf,
} from "./columns";

const USUAL_PX = 360;
/** Shorter tables need no search. */
const SEARCHED_FROM = 12;

interface TableProps
  extends
    ColumnLook,
    Partial<
      Pick<
        RowTableProps,
        "selected" | "onSelect" | "onHover" | "isMarked" | "heightPx" | "steady"
      >
    > {
  readonly view: ViewProps;
  /** Of an answer, or `filled` here where the browser alone knows the values. */
  readonly table: TableRows;
  /** Without rows; default: the table's own sentence. */
  readonly empty?: string;
  /** URL word of the order; absent: the order is not in the URL. */
  readonly word?: string;
  /** Columns of the page, before those of the answer. */
  readonly before?: readonly RowColumn[];
  /** Replaces title and summary; a function of the number of rows that are shown. */
  readonly head?: ComponentChildren | ((numRows: number) => ComponentChildren);
  readonly about?: Readonly<Record<string, unknown>>;
  readonly shell?: ExportShell;
  /** Of CSV and JSON; default: the title. */
  readonly fileName?: string;
  /** Its own kinds of files; default: CSV and JSON. */
  readonly files?: readonly MenuItem[];
  readonly children?: ComponentChildren;
}

export interface AnswerTableProps extends TableProps {
  readonly text?: string;
  /** Search box of long tables, and its URL word. */
  readonly find?: Pick<SearchBoxProps, "commands" | "label" | "placeholder"> & {
    readonly word: string;
  };
  readonly shows?: ((row: number) => boolean) | undefined;
  /** Shows only the first of these rows. */
  readonly most?: number;
}

/** The rows of a table, sorted, searched and exported. */
export function AnswerTable(props: AnswerTableProps) {
  const { view, stacks, find, shows, most = Infinity } = props;
  const { params, setParams } = view;
  const text = props.text ?? (find && params.get(find.word)) ?? "";
  const table = useMemo(
    () => withStackTexts(props.table, stacks),
    [props.table, stacks],
  );
  const { columns, usual, word, setWord } = useColumns(props, table);
  const { rows, ...sorting } = useSort(columns, table.numRows, usual, word, setWord);
  const matches = useMemo(() => rowsHolding(table, text), [table, text]);
  const shown = useMemo(() => {
    const isShown = (row: number) =>
      matches?.has(row) !== false && shows?.(row) !== false;
    return rows.filter(isShown).slice(0, most);
  }, [rows, matches, shows, most]);
  const { numRows } = table;
  return (
    <TableSection
      {...props}
      {...sorting}
      columns={columns}
      rows={shown}
      exported={shown}
      empty={text === "" ? (props.empty ?? table.empty) : `No row holds “${text}”.`}
      search={
        find !== undefined &&
        (text !== "" || numRows > SEARCHED_FROM) && (
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
        )
      }
    />
  );
}

export interface TreeTableProps
  extends
    TableProps,
    Pick<
      TreeOptions,
      "depth" | "find" | "flat" | "isFold" | "names" | "opened" | "texts" | "tree"
    > {
  readonly selected: number | null;
}

/** Rows below rows, by names in the first column; open or not, they are exported. */
export function TreeTable(props: TreeTableProps) {
  const { table, selected, names, texts = names, isFold } = props;
  const { columns, usual, word, setWord } = useColumns(props, table);
  const name = props.word ?? table.title;
  const shown = useTree({
    ...props,
    columns,
    table: name,
    selected,
    usual,
    word,
    setWord,
  });
  const exported = useMemo(() => {
    const matches = searchOf(props.find);
    const isExported = (row: number): boolean =>
      isFold?.(row) !== true && matches?.(texts[row] ?? "") !== false;
    return [...names.keys()].filter(isExported);
  }, [names, texts, props.find]);
  return <TableSection {...props} {...shown} exported={exported} />;
}

/** Rows that arrive in parts, in the order of the server; what has arrived is copied. */
export function PagedTable(
  props: TableProps & {
    /** Of a row that is drawn: it may request those that have not arrived. */
    readonly partOf: PartOf;
    readonly hasArrived: (row: number) => boolean;
  },
) {
  const { view, table, partOf, hasArrived, colours, culprits, stacks } = props;
  const { theme, byteUnit } = view;
  const { numRows } = table;
  const columns = pagedColumns(
    table,
    partOf,
    { theme, byteUnit },
    { colours, culprits, stacks },
  );
  const rows = useMemo(
    () => Int32Array.from({ length: numRows }, (_, row) => row),
    [numRows],
  );
  return (
    <TableSection
      {...props}
      columns={columns}
      rows={rows}
      sort={null}
      exported={null}
      copied={() => Array.from(rows).filter(hasArrived)}
    />
  );
}

function useColumns(props: TableProps, table: TableRows) {
  const {
    view,
    word,
    before = [],
    colours,
    culprits,
    stacks,
    swatches,
    cells,
    widths,
    titles,
  } = props;
  const { theme, byteUnit, params, setParams } = view;
  const own = useState<string | null>(null);
  const columns = useMemo(() => {
    const look = { colours, culprits, stacks, swatches, cells, widths, titles };
    return [...before, ...columnsOf(table, { theme, byteUnit }, look)];
  }, [
    table,
    theme,
    byteUnit,
    colours,
    culprits,
    stacks,
    swatches,
    cells,
    widths,
    titles,
    ...before,
  ]);
  const descending = !table.usual.startsWith("-");
  const usual: Sort = { key: table.usual.replace("-", ""), descending };
  if (word === undefined) return { columns, usual, word: own[0], setWord: own[1] };
  const setWord = (sort: string | null): void => setParams({ [word]: sort });
  return { columns, usual, word: params.get(word) ?? null, setWord };
}

function TableSection(
  props: TableProps &
    Pick<RowTableProps, "columns" | "onSort" | "rows" | "sort" | "tree"> & {
      /** null: only some rows have arrived. */
      readonly exported: readonly number[] | null;
      /** Default: all rows. */
      readonly copied?: () => readonly number[];
      readonly search?: ComponentChildren;
    },
) {
  const { view, table, columns, exported, rows, sort, files, about = {} } = props;
  const { head, children, heightPx = USUAL_PX, ...rest } = props;
  const { title, summary } = table;
  const box = useRef<HTMLElement>(null);
  const widthPx = useWidth(box);
  const visible = useMemo(
    () => columns.filter((column) => column.title !== ""),
    [columns],
  );
  // Asking for a style makes the browser compute all of them.
  const [gapPx, endsPx] = useMemo(
    () => (box.current === null ? [0, 0] : gapsOf(box.current)),
    [widthPx],
  );
  const drawn = useMemo(() => {
    return fittingIn(widthPx - endsPx - 2, gapPx, visible, rows, sort?.key ?? "");
  }, [visible, rows, widthPx, sort?.key]);
  return (
    <section aria-label={title} ref={box}>
      <div class="panel-head">
        {(typeof head === "function" ? head(rows.length) : head) ?? (
          <>
            <h3>{title}</h3>
            <span class="quiet">{summary}</span>
          </>
        )}
        {props.search}
        <span class="nowrap">
          <CopyMarkdownButton
            large
            subject={title}
            onClick={() =>
              view.copyMarkdown(
                rowsMarkdown(
                  table,
                  visible,
                  props.copied?.() ?? rows,
                  props.tree?.rows,
                ),
                typeof about["rank"] === "number" ? about["rank"] : undefined,
              )
            }
          />
          {files === undefined && exported !== null && (
            <ExportMenu
              shell={props.shell}
              subject={`the table: ${title}`}
              source={{
                origin: originOf(view.run),
                name: props.fileName ?? title.toLowerCase(),
                table: () => tableOf(columns, exported),
                about: () => about,
              }}
            />
          )}
          {files !== undefined && (
            <Menu label={`Export: ${title}`} empty="Nothing to export." items={files}>
              <Icon name="download" />
            </Menu>
          )}
        </span>
      </div>
      {children}
      <RowTable
        {...rest}
        label={title}
        columns={drawn}
        empty={props.empty ?? table.empty}
        heightPx={heightPx}
      />
    </section>
  );
}
