/** As the server writes Markdown (`analysis/text_tables.py`): a test compares both. */

/** Text from files: it neither ends a cell nor becomes markup. */
export function plainText(text: string): string {
  return text
    .replace(/[\p{C}\p{Z}]/gu, " ")
    .replaceAll("```", "'''")
    .replace(/[\\|<`[]/g, "\\$&");
}

export interface MarkdownColumn {
  readonly title: string;
  /** Aligned to the left, as the first column always is. */
  readonly isText: boolean;
}

/** `rows`: cells by column, as they are shown. */
export function markdownTable(
  columns: readonly MarkdownColumn[],
  rows: readonly (readonly string[])[],
): string {
  const titles = columns.map(({ title }) => (title === "" ? " " : ` ${title} `));
  const marks = columns.map(({ isText }, index) =>
    isText || index === 0 ? "-" : "-:",
  );
  const lines = rows.map((cells) => `| ${cells.map(plainText).join(" | ")} |`);
  return [`|${titles.join("|")}|`, `|${marks.join("|")}|`, ...lines].join("\n");
}
