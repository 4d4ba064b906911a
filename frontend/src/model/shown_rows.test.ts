import { describe, expect, it } from "vitest";
import { clicked, sortedRows, sortOf, sortWord } from "./shown_rows";

const USUAL = { key: "total", descending: true };
const KEYS = ["name", "total"];

describe("sortedRows", () => {
  it("puts what is not known last, whichever way", () => {
    const values = Float64Array.of(3, NaN, 5, 1);
    expect(sortedRows(4, values, true)).toEqual([2, 0, 3, 1]);
    expect(sortedRows(4, values, false)).toEqual([3, 0, 2, 1]);
  });

  it("keeps the order of equal values, and of no column", () => {
    expect(sortedRows(3, Float64Array.of(1, 1, 1), true)).toEqual([0, 1, 2]);
    expect(sortedRows(2, undefined, true)).toEqual([0, 1]);
  });

  it("sorts texts", () => expect(sortedRows(2, ["b", "a"], false)).toEqual([1, 0]));
});

describe("the word of the URL", () => {
  it("is left out where the order is the usual one", () => {
    expect(sortWord(USUAL, USUAL)).toBeNull();
    expect(sortWord({ key: "name", descending: false }, USUAL)).toBe("-name");
  });

  it("says what it said", () => {
    for (const sort of [
      USUAL,
      { key: "name", descending: false },
      { key: "total", descending: false },
    ]) {
      expect(sortOf(sortWord(sort, USUAL) ?? undefined, KEYS, USUAL)).toEqual(sort);
    }
    expect(sortOf("constructor", KEYS, USUAL)).toEqual(USUAL);
  });

  it("changes with clicks", () => {
    expect(clicked(USUAL, "total", false)).toEqual({ key: "total", descending: false });
    expect(clicked(USUAL, "name", true)).toEqual({ key: "name", descending: false });
  });
});
