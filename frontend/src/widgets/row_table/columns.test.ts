import { describe, expect, it } from "vitest";
import {
  absentCell,
  barOf,
  countCell,
  durationCell,
  longestOf,
  numberColumn,
  textColumn,
} from "./columns";

describe("columns", () => {
  it("sort, and say what they are where that is told", () => {
    const calls = numberColumn(
      "calls",
      "Calls",
      "80px",
      () => countCell(1234),
      "How often",
    );
    expect(calls).toMatchObject({ numeric: true, sortable: true, hint: "How often" });
    expect(calls.cell(0).text).toBe("1,234");
    expect("hint" in numberColumn("a", "A", "8px", () => countCell(0))).toBe(false);
  });

  it("take texts, or what makes a cell of a row", () => {
    const names = textColumn("name", "Name", "1fr", ["mm", "add"]);
    expect(names.numeric).toBe(false);
    expect([0, 1, 2].map((row) => names.cell(row).text)).toEqual(["mm", "add", ""]);
    const made = textColumn("name", "Name", "1fr", (row) => ({ text: `row ${row}` }));
    expect(made.cell(7).text).toBe("row 7");
  });
});

describe("cells", () => {
  it("keep every digit of a time that a trace can hold, and no more", () => {
    expect(durationCell(0.1 + 0.2)).toEqual({ text: "300 µs", title: "0.3 ms" });
    expect(durationCell(1234.567891).title).toBe("1,234.567891 ms");
  });

  it("say why something is missing", () =>
    expect(absentCell("not recorded")).toEqual({ text: "–", title: "not recorded" }));

  it("have bars as long as their share of the longest", () => {
    const values = Float64Array.of(1, -4, NaN);
    expect(longestOf(values)).toBe(4);
    expect(barOf(1, longestOf(values), "#fff").share).toBe(0.25);
    expect(barOf(1, longestOf([]), "#fff").share).toBe(0);
  });
});
