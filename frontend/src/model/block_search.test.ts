import { describe, expect, test } from "vitest";
import {
  isEmptySearch,
  matchingFrames,
  matchingStacks,
  parseSearch,
  parseSize,
  sizeMatches,
  stackMatches,
} from "./block_search";
import { testStacks, TRAINING } from "./stacks/test_stacks";

const stacks = testStacks(TRAINING);
const matches = (text: string): number[] => [
  ...matchingStacks(parseSearch(text), stacks),
];

describe("sizes", () => {
  test.each([
    ["100MiB", 100 * 1024 ** 2],
    ["1.5g", 1.5 * 1024 ** 3],
    ["4096", 4096],
    ["512 B", 512],
    ["2TB", 2 * 1024 ** 4],
    ["", null],
    ["MiB", null],
    ["1e9", null],
    ["12XB", null],
  ])("%s", (text, bytes) => expect(parseSize(text)).toBe(bytes));

  test("both ends, and which of them are included", () => {
    const between = parseSearch(">100 <=1KiB");
    expect([100, 101, 1024, 1025].map((bytes) => sizeMatches(between, bytes))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(sizeMatches(parseSearch("=4KiB"), 4096)).toBe(true);
    expect(sizeMatches(parseSearch("<4096"), 4096)).toBe(false);
  });

  test("a size nobody understands is said, and the rest still searches", () => {
    const search = parseSearch(">100XB forward");
    expect(search.problems).toEqual([
      "“100XB” is no size; write it like 100MiB or 4096.",
    ]);
    expect(search.terms).toHaveLength(1);
  });
});

describe("words", () => {
  test("all have to be found, in any frame, file or module of the stack", () => {
    expect(matches("FORWARD")).toEqual([1, 1, 0, 0, 0]);
    expect(matches("forward flash")).toEqual([0, 1, 0, 0, 0]);
    expect(matches("attention")).toEqual([0, 1, 0, 0, 0]);
    expect(matches("module:linear")).toEqual([1, 0, 0, 0, 0]);
    expect(matches("file:linear")).toEqual([0, 0, 0, 0, 0]);
    expect(matches("frame:step file:train.py")).toEqual([0, 0, 1, 0, 0]);
  });

  test("a minus leaves out, and keeps blocks without a stack", () => {
    expect(matches("-forward")).toEqual([0, 0, 1, 1, 1]);
    expect(stackMatches(matchingStacks(parseSearch("-forward"), stacks), -1)).toBe(
      true,
    );
    expect(stackMatches(matchingStacks(parseSearch("forward"), stacks), -1)).toBe(
      false,
    );
  });

  test("quotes hold spaces together; an unclosed one ends with the text", () =>
    expect(parseSearch('frame:"my fn" "x y').terms.map(({ text }) => text)).toEqual([
      "my fn",
      "x y",
    ]));

  test("nothing typed finds everything and is no search", () => {
    expect(isEmptySearch(parseSearch("  "))).toBe(true);
    expect(isEmptySearch(parseSearch(">1"))).toBe(false);
    expect(matches("")).toEqual([1, 1, 1, 1, 1]);
  });

  test("single frames that hold a word are known, for drawings", () => {
    const frames = matchingFrames(parseSearch("forward -adam"), stacks);
    const names = [...frames].flatMap((isMatch, i) =>
      isMatch === 1 ? [stacks.frame(i).name] : [],
    );
    expect(new Set(names)).toEqual(new Set(["forward"]));
  });
});
