import { describe, expect, it } from "vitest";
import { formatRankSet, parseRankSet } from "./rank_set";

function ranksOf(text: string): readonly number[] {
  const parsed = parseRankSet(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.ranks;
}

describe("parseRankSet", () => {
  it.each([
    ["", []],
    ["12", [12]],
    ["0-3,64", [0, 1, 2, 3, 64]],
    [" 7 , 3 - 4 ,", [3, 4, 7]],
    ["5,5,4-6", [4, 5, 6]],
  ])("reads “%s”", (text, ranks) => expect(ranksOf(text)).toEqual(ranks));

  it.each(["x", "-3", "3-", "1.5", "7-3", "0-999999999", "1 2", "<b>", "٣"])(
    "refuses “%s” and says which part",
    (text) => {
      const parsed = parseRankSet(`1,${text}`);
      expect(parsed.ok).toBe(false);
      if (!parsed.ok) expect(parsed.problem).toContain(text);
    },
  );
});

describe("formatRankSet", () => {
  it.each(["", "0", "0-7,64", "1,3,5", "0-1", "4-6,9-12,4095"])(
    "gives back “%s”",
    (text) => expect(formatRankSet(ranksOf(text))).toBe(text),
  );

  it("names exactly the ranks it was given, in any order", () => {
    const ranks = Array.from({ length: 300 }, (_, i) => (i * 7919) % 1009);
    const expected = [...new Set(ranks)].sort((a, b) => a - b);
    expect(ranksOf(formatRankSet(ranks))).toEqual(expected);
  });
});
