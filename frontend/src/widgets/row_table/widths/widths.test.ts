import { describe, expect, it } from "vitest";
import type { RowColumn } from "../columns";
import { columnWidth, fittingIn } from "./widths";

const NUMBERS = ["Free", "Largest", "Return-\nable", "Reserved"];

function column(title: string, text: string, numeric: boolean): RowColumn {
  const width = columnWidth(numeric ? "number" : "text", title);
  return { key: title, title, numeric, width, cell: () => ({ text }) };
}

const COLUMNS = [
  column("Requests", "large", false),
  ...NUMBERS.map((title) => column(title, "3.23 MiB", true)),
];

function leastPx(columns: readonly RowColumn[]): number {
  return columns.reduce((sum, { width }) => sum + Number(/\d+/.exec(width)?.[0]), 0);
}

describe("columns where there is little room", () => {
  it("stay as they are where all fit, and before the room is known", () => {
    expect(fittingIn(900, 12, COLUMNS, [0], "Free")).toBe(COLUMNS);
    expect(fittingIn(-22, 12, COLUMNS, [0], "Free")).toBe(COLUMNS);
  });

  it("fit the inspector beside a picture", () => {
    const shown = fittingIn(306, 8, COLUMNS, [0], "Free");
    expect(leastPx(shown) + 4 * 8).toBeLessThanOrEqual(306);
  });

  it("never cut a number or its heading", () => {
    for (const { title, width } of fittingIn(100, 8, COLUMNS, [0], "Free").slice(1)) {
      const lines = title.split("\n").map(({ length }) => length);
      const letters = Math.max(...lines, "3.23 MiB".length);
      expect(Number(/\d+/.exec(width)?.[0])).toBeGreaterThanOrEqual(6.3 * letters);
    }
  });
});
