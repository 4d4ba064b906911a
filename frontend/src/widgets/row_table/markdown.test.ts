import { expect, it } from "vitest";
import type { RowColumn } from "./columns";
import { rowsMarkdown } from "./markdown";

const COLUMNS: readonly RowColumn[] = [
  {
    key: "name",
    title: "Module",
    numeric: false,
    width: "1fr",
    isTree: true,
    cell: (row) => ({ text: `layer${row}`, note: row === 1 ? "8 ranks" : "" }),
  },
  {
    key: "bytes",
    title: "Own\nbytes",
    numeric: true,
    width: "1fr",
    cell: (row) => ({ text: `${row} MiB` }),
  },
];

it("copies rows as they are shown: in their order, their depth, with their notes", () => {
  const nodes = [0, 1].map((depth) => ({
    id: 2 - depth,
    depth,
    numChildren: 0,
    expanded: false,
  }));
  const table = { title: "Modules", summary: "Two of them.", numAll: 2 };
  expect(rowsMarkdown(table, COLUMNS, [2, 1], nodes)).toBe(
    [
      "## Modules",
      "",
      "Two of them.",
      "",
      "| Module | Own bytes |",
      "|-|-:|",
      "| layer2 | 2 MiB |",
      "| › layer1 8 ranks | 1 MiB |",
    ].join("\n"),
  );
});

it("says how many rows there are where not all are copied", () => {
  const rows = Array.from({ length: 600 }, (_, row) => row);
  const table = { title: "Modules", summary: "", numAll: 1600 };
  const lines = rowsMarkdown(table, COLUMNS, rows).split("\n");
  expect(lines.filter((line) => line.startsWith("| layer"))).toHaveLength(500);
  expect(lines.at(-1)).toBe("500 of 1,600 rows.");
});
