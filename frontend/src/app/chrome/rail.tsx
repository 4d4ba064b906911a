/** The left rail: which run, which ranks, which page. */

import type { RunSummary } from "../../api/types.gen";
import { formatAgo, formatInstant } from "../../base/durations";
import { formatInteger } from "../../base/bytes";
import { PAGES, type PageName } from "../pages";
import { RankChooser, type RankChooserProps } from "./rank_chooser";

export interface RailProps {
  readonly runs: readonly RunSummary[];
  readonly run: RunSummary | null;
  readonly page: PageName;
  readonly chooseRun: (id: string) => void;
  readonly choosePage: (page: PageName) => void;
  readonly ranks: RankChooserProps | null;
  readonly version: string;
}

export function Rail(props: RailProps) {
  const { run, ranks } = props;
  return (
    <nav class="rail" aria-label="Run, ranks and pages">
      <section class="rail-section">
        <h2>
          <label for="run-picker">Run</label>
          {run !== null && <RunPulse run={run} />}
        </h2>
        <select
          id="run-picker"
          value={run?.id ?? ""}
          disabled={props.runs.length === 0}
          onChange={(event) => props.chooseRun(event.currentTarget.value)}
        >
          {props.runs.length === 0 && <option value="">none yet</option>}
          {props.runs.map((one) => (
            <option key={one.id} value={one.id}>
              {one.name}
            </option>
          ))}
        </select>
        {run !== null && (
          <p class="quiet rail-note">
            {runFacts(run).map((fact, i) => (
              <>
                {i > 0 && " · "}
                <span class="nowrap">{fact}</span>
              </>
            ))}
          </p>
        )}
      </section>
      <PageList {...props} />
      {ranks !== null && <RankChooser {...ranks} />}
      <p class="rail-foot quiet">MemBoard {props.version}</p>
    </nav>
  );
}

function RunPulse({ run }: { readonly run: RunSummary }) {
  const title = `Newest row: ${formatInstant(run.lastMs)}`;
  return run.live ? (
    <span class="live" title={title}>
      live
    </span>
  ) : (
    <span class="quiet" title={title}>
      {formatAgo(run.lastMs, Date.now())}
    </span>
  );
}

const DEVICE_WORDS: Readonly<Record<string, string>> = {
  cpu: "no accelerator",
  "": "device not recorded",
};

function runFacts(run: RunSummary): readonly string[] {
  if (run.madeOf === "memprofiler") return ["MemProfiler's files"];
  if (run.madeOf === "snapshots") return ["memory snapshots"];
  if (run.madeOf === "traces") return ["profiler traces"];
  const parts = [
    DEVICE_WORDS[run.deviceType] ?? run.deviceType,
    run.lastStep === null ? "no step yet" : `step ${formatInteger(run.lastStep)}`,
  ];
  if (run.numAttempts > 1) parts.push(`${run.numAttempts} attempts`);
  return parts;
}

function PageList({ page, choosePage }: RailProps) {
  return (
    <ul class="pages">
      {PAGES.map((one, i) => (
        <li key={one}>
          <button
            type="button"
            class="page-link"
            aria-current={one === page ? "page" : undefined}
            onClick={() => choosePage(one)}
          >
            {one}
            <kbd>{i + 1}</kbd>
          </button>
        </li>
      ))}
    </ul>
  );
}
