import { describe, expect, it } from "vitest";
import type { Problem } from "../../api/types.gen";
import { groupProblems, ranksOf } from "./problem_list";

function problem(rank: number, changes: Partial<Problem> = {}): Problem {
  return {
    severity: "warning",
    path: `rank${rank}.events`,
    what: "The file is empty.",
    where: "",
    salvaged: "nothing",
    remedy: "Delete it.",
    rank,
    slice: null,
    kind: "fault",
    ...changes,
  };
}

describe("groupProblems", () => {
  it("tells a thousand files of one trouble once, and loses none", () => {
    const many = Array.from({ length: 1000 }, (_, i) => problem(999 - i));
    const torn = problem(7, { what: "The file ends early." });
    const groups = groupProblems([...many, torn]);
    expect(groups.map((group) => group.length)).toEqual([1000, 1]);
    expect(groups[0] && ranksOf(groups[0])).toEqual(
      Array.from({ length: 1000 }, (_, i) => i),
    );
  });

  it("tells a few one by one", () => {
    const groups = groupProblems([problem(1), problem(2), problem(3)]);
    expect(groups.map((group) => group[0].rank)).toEqual([1, 2, 3]);
  });

  it("puts errors first, notes last, and keeps apart what has another remedy", () => {
    const note = problem(7, { severity: "info" });
    const error = problem(9, { severity: "error" });
    const other = problem(8, { remedy: "Wait." });
    const groups = groupProblems([note, problem(1), other, error]);
    expect(groups.map((group) => group[0].rank)).toEqual([9, 1, 8, 7]);
  });
});
