/** Operators: how long each took and which memory it held, on the host and on devices. */

import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { MemoryTab } from "./memory/tab";
import "./operators.css";
import { TimeTab } from "./time/tab";

const PARTS = ["time", "memory"] as const;
type Part = (typeof PARTS)[number];

const PART_WORDS: Readonly<Record<Part, readonly [string, string]>> = {
  time: ["Time", "Calls and times on the host and on devices"],
  memory: ["Memory", "What operators allocated, when, and for how long"],
};

export function OperatorsView(view: ViewProps) {
  const part: Part = view.params.get("tab") === "memory" ? "memory" : "time";
  const tabs = (
    <Segmented
      label="What is shown of operators"
      options={PARTS}
      chosen={part}
      words={(one) => PART_WORDS[one]}
      onChoose={(one) => {
        const word = one === "time" ? null : one;
        view.setParams({ tab: word, sort: null }, "push");
      }}
    />
  );
  return (
    <div class="operators">
      {part === "time" ? (
        <TimeTab view={view} tabs={tabs} />
      ) : (
        <MemoryTab view={view} tabs={tabs} />
      )}
    </div>
  );
}
