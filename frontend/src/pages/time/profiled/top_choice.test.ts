import { describe, expect, it } from "vitest";
import { listedWords, topRows } from "./top_choice";
import type { ViewProps } from "../../shared/view_props";

function asking(top: string): ViewProps {
  return { params: new Map([["top", top]]) } as unknown as ViewProps;
}

describe("topRows", () => {
  const rows = Array.from({ length: 60 }, (_, row) => 59 - row);

  it("takes the first as they are sorted", () => {
    expect(topRows(asking("10"), rows)).toEqual([
      59, 58, 57, 56, 55, 54, 53, 52, 51, 50,
    ]);
    expect(topRows(asking("50"), rows)).toHaveLength(50);
    expect(topRows(asking("50"), rows.slice(0, 3))).toEqual([59, 58, 57]);
  });

  it("takes all where it is not asked for one of its numbers", () => {
    for (const word of ["all", "", "-1", "7", "x"]) {
      expect(topRows(asking(word), rows)).toBe(rows);
    }
  });
});

describe("listedWords", () =>
  it("says only what is left out", () => {
    expect(listedWords(10, 1234)).toBe("; the first 10 are listed");
    expect(listedWords(12, 12)).toBe("");
  }));
