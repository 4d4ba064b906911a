/** Files that could not be read whole: what, where, what was saved, what to do. */

import type { Problem } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { formatRankSet } from "../../base/rank_set";
import { Status, type StatusLook } from "../status/status";
import "./problem_list.css";

export function ProblemList({ problems }: { readonly problems: readonly Problem[] }) {
  return (
    <ul class="problem-list">
      {groupProblems(problems).map((group) => (
        <li key={`${group.first.path} ${group.first.where} ${group.first.what}`}>
          <Status look={LOOKS[group.first.severity]} />
          <div>
            <p>
              <strong>{group.first.what}</strong>{" "}
              <span class="quiet">{subject(group)}</span>
            </p>
            {group.members.length === 1 ? (
              <>
                <Where problem={group.first} />
                {group.first.salvaged !== "" && <p>Kept: {group.first.salvaged}</p>}
              </>
            ) : (
              <Members group={group} />
            )}
            {group.first.remedy !== "" && <p>{group.first.remedy}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}

const LOOKS: Readonly<Record<Problem["severity"], StatusLook>> = {
  error: { word: "Error", icon: "cross", tone: "bad" },
  warning: { word: "Warning", icon: "warning", tone: "warn" },
};

/** Longer lists of ranks say less than their number. */
const MOST_CHARACTERS = 60;

function subject(group: ProblemGroup): string {
  const ranks = ranksOf(group);
  const [only] = ranks;
  if (ranks.length === 1 && only !== undefined && group.members.length === 1) {
    return `rank ${only}`;
  }
  if (group.members.length === 1) return "";
  const files = `${formatInteger(group.members.length)} files`;
  const set = formatRankSet(ranks);
  return ranks.length === 0 || set.length > MOST_CHARACTERS
    ? files
    : `${files}, ranks ${set}`;
}

function Where({ problem }: { readonly problem: Problem }) {
  return (
    <p class="quiet">
      <code>{problem.path}</code>
      {problem.where !== "" && `, ${problem.where}`}
    </p>
  );
}

/** A thousand rows help nobody and cost a second to lay out. */
const MOST_MEMBERS = 100;

function Members({ group }: { readonly group: ProblemGroup }) {
  const rest = group.members.length - MOST_MEMBERS;
  return (
    <details>
      <summary>Show the files</summary>
      {group.members.slice(0, MOST_MEMBERS).map((one) => (
        <p key={`${one.path} ${one.where}`} class="quiet">
          <code>{one.path}</code>
          {one.where !== "" && `, ${one.where}`}
          {one.salvaged !== "" && `; kept: ${one.salvaged}`}
        </p>
      ))}
      {rest > 0 && <p class="quiet">and {formatInteger(rest)} more</p>}
    </details>
  );
}

/** Files with the same trouble, told as one; pure. */
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
