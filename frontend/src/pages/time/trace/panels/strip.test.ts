import { describe, expect, it } from "vitest";
import { overviewScale, scaleWords } from "./strip";

function columns(num: number, of: (column: number) => number): Float64Array {
  return Float64Array.from({ length: num }, (_, column) => of(column));
}

describe("the scale of the overview", () => {
  it("is that of the tallest column where none stands far above the others", () => {
    const totals = columns(1_000, (column) => 1 + Math.sin(column / 50));
    const { top, most, numCut } = overviewScale(totals);
    expect([top, numCut]).toEqual([most, 0]);
    expect(most).toBe(Math.max(...totals));
  });

  it("is not set by a spike, however tall: the others keep their height", () => {
    for (const tall of [10, 1e3, 1e9]) {
      const totals = columns(1_000, (column) =>
        column === 700 ? tall : 1 + (column % 3),
      );
      const scale = overviewScale(totals);
      expect(scale.top).toBeCloseTo(3.6);
      expect(scale).toMatchObject({ most: tall, mostAt: 700, numCut: 1 });
    }
  });

  it("cuts nothing that many columns reach", () => {
    const wide = columns(1_000, (column) => (column < 100 ? 40 : 1));
    expect(overviewScale(wide)).toMatchObject({ top: 40, numCut: 0 });
    const narrow = columns(1_000, (column) => (column < 20 ? 40 : 1));
    expect(overviewScale(narrow)).toMatchObject({ most: 40, numCut: 20 });
  });

  it("looks at what is busy alone, and cuts but what is above the top", () => {
    const few = columns(1_000, (column) => (column % 100 === 0 ? 1 : 0));
    few[500] = 9;
    // Of ten busy columns one is no exception.
    expect(overviewScale(few)).toMatchObject({ top: 9, numCut: 0 });
    const many = columns(1_000, (column) =>
      column === 3 ? 100 : column === 4 ? 1.1 : 1,
    );
    expect(overviewScale(many)).toMatchObject({ top: 1.2, numCut: 1 });
  });

  it("is nothing of nothing", () => {
    expect(overviewScale(new Float64Array())).toMatchObject({
      top: 0,
      most: 0,
      numCut: 0,
    });
    expect(overviewScale(new Float64Array(2))).toMatchObject({ top: 0, numCut: 0 });
  });
});

describe("what the heights say", () => {
  const when = (column: number): string => `${column} s`;

  it("is how much they stand for, and where more of it was", () => {
    const cut = { top: 3.57, most: 41.2, mostAt: 7, numCut: 2 };
    expect(scaleWords({ ...cut, numCut: 0 }, when)).toBe(
      "Height: how many slices are under way at once, up to 3.6",
    );
    const text = scaleWords(cut, when);
    expect(text).toContain("up to 3.6. Columns with a gap");
    expect(text).toContain("up to 41, 7 s after the beginning");
    expect(scaleWords({ top: 0, most: 0, mostAt: 0, numCut: 0 }, when)).toBe("");
  });
});
