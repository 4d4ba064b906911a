import type { Problem } from "../../api/types.gen";
import { counted, formatInteger } from "../../base/bytes";
import { formatRankSet } from "../../model/words/rank_set";
import { Status, type StatusLook } from "../icon/icon";
import "./problem_list.css";

const LOOKS: Readonly<Record<Problem["severity"], StatusLook>> = {
  error: { word: "Error", icon: "cross", tone: "bad" },
  warning: { word: "Warning", icon: "warning", tone: "warn" },
  info: { word: "Note", icon: "info", tone: "quiet" },
};
const SEVERITIES: readonly Problem["severity"][] = ["error", "warning", "info"];

/** Up to this many files with one problem are listed separately. */
const MOST_APART = 3;
/** A thousand rows take a second to lay out. */
const MOST_MEMBERS = 100;
/** Longer lists of ranks are replaced by their number. */
const MOST_CHARACTERS = 60;

export function ProblemList(props: {
  readonly problems: readonly Problem[];
  /** Shows a slice of a trace, where a problem names one. */
  readonly onSlice?: ((slice: string) => void) | undefined;
}) {
  const { problems, onSlice } = props;
  return (
    <ul class="problem-list">
      {groupProblems(problems).map((members) => {
        const [first] = members;
        const rest = members.length - MOST_MEMBERS;
        const where = members.slice(0, MOST_MEMBERS).map((problem) => (
          <p key={`${problem.path} ${problem.where}`} class="quiet">
            <code>{problem.path}</code>
            {problem.where !== "" && `, ${problem.where}`}
            {problem.salvaged !== "" && `; recovered: ${problem.salvaged}`}
            {problem.slice !== null && " "}
            {problem.slice !== null && onSlice !== undefined && (
              <SliceButton slice={problem.slice} onSlice={onSlice} />
            )}
          </p>
        ));
        return (
          <li key={`${first.path} ${first.where} ${first.what}`}>
            <Status look={LOOKS[first.severity]} />
            <div>
              <p>
                <strong>{first.what}</strong>{" "}
                <span class="quiet">{subject(members)}</span>
              </p>
              {members.length === 1 ? (
                where
              ) : (
                <details>
                  <summary>Show the files</summary>
                  {where}
                  {rest > 0 && <p class="quiet">and {formatInteger(rest)} more</p>}
                </details>
              )}
              {first.remedy !== "" && <p>{first.remedy}</p>}
            </div>
          </li>
        );
      })}
    </ul>
  );
}

function SliceButton(props: {
  readonly slice: string;
  readonly onSlice: (slice: string) => void;
}) {
  return (
    <button type="button" class="button" onClick={() => props.onSlice(props.slice)}>
      Show the slice
    </button>
  );
}

type ProblemGroup = readonly [Problem, ...Problem[]];

/** The worst first, otherwise in the order of the files. */
export function groupProblems(problems: readonly Problem[]): readonly ProblemGroup[] {
  const byTrouble = new Map<string, [Problem, ...Problem[]]>();
  for (const problem of problems) {
    const key = JSON.stringify([problem.severity, problem.what, problem.remedy]);
    const group = byTrouble.get(key);
    if (group === undefined) byTrouble.set(key, [problem]);
    else group.push(problem);
  }
  const order = ([{ severity }]: ProblemGroup) => SEVERITIES.indexOf(severity);
  return [...byTrouble.values()]
    .flatMap((group): readonly ProblemGroup[] =>
      group.length <= MOST_APART ? group.map((problem) => [problem]) : [group],
    )
    .sort((a, b) => order(a) - order(b));
}

/** Ascending, unique. */
export function ranksOf(group: ProblemGroup): readonly number[] {
  const ranks = group.flatMap(({ rank }) => (rank === null ? [] : [rank]));
  return [...new Set(ranks)].sort((a, b) => a - b);
}

function subject(group: ProblemGroup): string {
  const ranks = ranksOf(group);
  if (group.length === 1) return ranks.map((rank) => `rank ${rank}`).join("");
  const files = counted(group.length, "file");
  const set = formatRankSet(ranks);
  return ranks.length === 0 || set.length > MOST_CHARACTERS
    ? files
    : `${files}, ranks ${set}`;
}
