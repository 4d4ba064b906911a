import { describe, expect, it } from "vitest";
import { absentCell, barOf, durationCell, longestOf } from "./columns";

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
