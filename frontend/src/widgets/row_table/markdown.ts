import type { TableRows } from "../../api/types.gen";
import { counted, formatInteger } from "../../base/bytes";
import { markdownTable, plainText } from "../../model/words/markdown";
import type { TreeRow } from "../../model/tree";
import type { RowColumn } from "./columns";

/** A comment of an issue tracker holds no more. */
const MOST_ROWS = 500;
/** Markdown drops spaces at the beginning of a cell. */
const LEVEL = "› ";

/** The rows as they are shown, below the table's title and summary; `numAll`: shown or not. */
export function rowsMarkdown(
  { title, summary, numAll }: Pick<TableRows, "title" | "summary" | "numAll">,
  columns: readonly RowColumn[],
  rows: ArrayLike<number>,
  nodes: readonly TreeRow[] = [],
): string {
  const listed = Array.from(rows).slice(0, MOST_ROWS);
  const cells = listed.map((row, place) =>
    columns.map(({ isTree, cell }) => {
      const { text, note = "" } = cell(row);
      const depth = isTree === true ? (nodes[place]?.depth ?? 0) : 0;
      return LEVEL.repeat(depth) + (note === "" ? text : `${text} ${note}`);
    }),
  );
  const headings = columns.map(({ title: heading, numeric }) => ({
    title: plainText(heading.replaceAll("\n", " ")),
    isText: !numeric,
  }));
  const cut =
    listed.length < numAll
      ? `${formatInteger(listed.length)} of ${counted(numAll, "row")}.`
      : "";
  return [
    `## ${plainText(title)}`,
    plainText(summary),
    markdownTable(headings, cells),
    cut,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}
