import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { markdownTable, type MarkdownColumn } from "./markdown";

interface MarkdownCase {
  readonly columns: readonly MarkdownColumn[];
  readonly rows: readonly (readonly string[])[];
  readonly markdown: readonly string[];
}

// tests/tb_plugin/test_copied_markdown.py expects the same of the server.
it("writes tables as the server does", () => {
  const file = join(import.meta.dirname, "markdown_cases.json");
  const cases = JSON.parse(readFileSync(file, "utf8")) as readonly MarkdownCase[];
  for (const { columns, rows, markdown } of cases)
    expect(markdownTable(columns, rows)).toBe(markdown.join("\n"));
});
