import type { RowColumn } from "../columns";
import { headingWidth, inTwoLines, narrowHeadingWidth } from "./headings";

const TEXT_WIDTHS = { name: "minmax(160px, 2fr)", text: "minmax(96px, 1fr)" };
const NUMBER_WIDTHS = { number: 60, bar: 96, instant: 124 };
/** Of a text's least width: below it, numbers become narrower first. */
const READABLE_SHARE = 1.75;
const LETTER_PX = 6.3;
/** Of `220 ms`, whose letters are wide. */
const LEAST_PX = 44;
/** Of texts, where there is hardly any room. */
const LEAST_TEXT_PX = 72;
/** Rows that determine how narrow a number can be. */
const SAMPLE_ROWS = 50;

/** `isFree`: it takes of the free width. */
export function columnWidth(
  kind: keyof typeof TEXT_WIDTHS | keyof typeof NUMBER_WIDTHS,
  title = "",
  hasSwatch = false,
  isFree = false,
): string {
  if (kind === "name" || kind === "text") return TEXT_WIDTHS[kind];
  const px = Math.max(headingWidth(title, hasSwatch), NUMBER_WIDTHS[kind]);
  return isFree ? `minmax(${px}px, 1fr)` : `${px}px`;
}

function leastPx({ width }: RowColumn): number {
  return Number(/\d+/.exec(width)?.[0] ?? 0);
}

/** Of the longest value in the first rows, with its note. */
function valuePx({ cell }: RowColumn, rows: ArrayLike<number>): number {
  let letters = 0;
  for (let i = 0; i < Math.min(rows.length, SAMPLE_ROWS); i += 1) {
    const { text, note = "" } = cell(rows[i] ?? 0);
    letters = Math.max(letters, text.length + (note === "" ? 0 : note.length + 1));
  }
  return Math.ceil(letters * LETTER_PX);
}

/** Px between columns, and beside the outer ones together: of row_table.css. */
export function gapsOf(table: HTMLElement): readonly [number, number] {
  const style = getComputedStyle(table);
  const px = (name: string): number =>
    Number.parseFloat(style.getPropertyValue(`--row-table-${name}`)) || 0;
  return [px("gap"), 2 * px("end")];
}

/**
 * Where not all columns fit, headings have two lines and values the room that they need;
 * where they still do not, only the heading that sorts has room for its arrow, and texts
 * are cut.
 *
 * @param widthPx Of the columns and the gaps between them.
 */
export function fittingIn(
  widthPx: number,
  gapPx: number,
  columns: readonly RowColumn[],
  rows: ArrayLike<number>,
  sorted: string,
): readonly RowColumn[] {
  if (widthPx <= 0) return columns;
  const wishedPx = (column: RowColumn): number =>
    leastPx(column) *
    (column.numeric || column.keepsWidth === true ? 1 : READABLE_SHARE);
  const fits = (all: readonly RowColumn[]): boolean =>
    all.reduce((sum, column) => sum + wishedPx(column) + gapPx, -gapPx) <= widthPx;
  if (fits(columns)) return columns;
  const narrowed = (isLast: boolean): readonly RowColumn[] =>
    columns.map((column): RowColumn => {
      if (column.keepsWidth === true) return column;
      const { key, numeric, swatch } = column;
      const title = numeric ? inTwoLines(column.title) : column.title;
      const hasArrow = !isLast || key === sorted;
      const headPx = narrowHeadingWidth(title, swatch !== undefined, hasArrow);
      const mostPx = isLast && !numeric ? LEAST_TEXT_PX : leastPx(column);
      const px = Math.min(Math.max(headPx, valuePx(column, rows), LEAST_PX), mostPx);
      return { ...column, title, width: column.width.replace(/\d+/, `${px}`) };
    });
  const all = narrowed(false);
  return fits(all) ? all : narrowed(true);
}
