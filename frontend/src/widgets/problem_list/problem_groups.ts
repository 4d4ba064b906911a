/** Files with the same trouble, told as one; pure. */

import type { Problem } from "../../api/types.gen";

export interface ProblemGroup {
  readonly first: Problem;
  readonly members: readonly Problem[];
}

/** As many are told one by one before they are told together. */
const MOST_APART = 3;

/** Errors first; the order of the files stays. */
export function groupProblems(problems: readonly Problem[]): readonly ProblemGroup[] {
  const byTrouble = new Map<string, Problem[]>();
  for (const one of problems) {
    const key = JSON.stringify([one.severity, one.what, one.remedy]);
    const group = byTrouble.get(key);
    if (group === undefined) byTrouble.set(key, [one]);
    else group.push(one);
  }
  return [...byTrouble.values()]
    .flatMap((members) =>
      members.length <= MOST_APART ? members.map((one) => [one]) : [members],
    )
    .flatMap((members) => {
      const [first] = members;
      return first === undefined ? [] : [{ first, members }];
    })
    .sort((a, b) => weight(a.first) - weight(b.first));
}

function weight(problem: Problem): number {
  return problem.severity === "error" ? 0 : 1;
}

/** The ranks of a group, ascending, each once. */
export function ranksOf(group: ProblemGroup): readonly number[] {
  const ranks = group.members.flatMap(({ rank }) => (rank === null ? [] : [rank]));
  return [...new Set(ranks)].sort((a, b) => a - b);
}
