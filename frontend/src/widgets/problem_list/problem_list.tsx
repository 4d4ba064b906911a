/** Files that could not be read whole: what, where, what was saved, what to do. */

import type { Problem } from "../../api/types.gen";
import { Icon } from "../icon/icon";
import "./problem_list.css";

export function ProblemList({ problems }: { readonly problems: readonly Problem[] }) {
  return (
    <ul class="problem-list">
      {problems.map((problem) => (
        <li key={`${problem.path} ${problem.where} ${problem.what}`}>
          <span class={problem.severity === "error" ? "status-bad" : "status-warn"}>
            <Icon name={problem.severity === "error" ? "cross" : "warning"} />
            {problem.severity === "error" ? "Error" : "Warning"}
          </span>
          <div>
            <p>
              <strong>{problem.what}</strong>{" "}
              {problem.rank !== null && <span class="quiet">rank {problem.rank}</span>}
            </p>
            <p class="quiet">
              <code>{problem.path}</code>
              {problem.where !== "" && `, ${problem.where}`}
            </p>
            {problem.salvaged !== "" && <p>Kept: {problem.salvaged}</p>}
            {problem.remedy !== "" && <p>{problem.remedy}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}
