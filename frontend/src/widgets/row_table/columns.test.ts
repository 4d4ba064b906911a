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
  it("hold what they are sorted by, and say what they are where that is told", () => {
    const values = [1234, 5];
    const calls = numberColumn(
      "calls",
      "Calls",
      "80px",
      values,
      countCell,
      "How often",
    );
    expect(calls).toMatchObject({ numeric: true, values, hint: "How often" });
    expect(calls.cell(0).text).toBe("1,234");
    expect("hint" in numberColumn("a", "A", "8px", values, countCell)).toBe(false);
  });

  it("take texts, and what makes a cell of one", () => {
    const names = textColumn("name", "Name", "1fr", ["mm", "add"]);
    expect(names.numeric).toBe(false);
    expect([0, 1, 2].map((row) => names.cell(row).text)).toEqual(["mm", "add", ""]);
    const told = textColumn("name", "Name", "1fr", ["mm"], "A name", (text, row) => ({
      text: `${text} ${row}`,
    }));
    expect(told.cell(0).text).toBe("mm 0");
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
