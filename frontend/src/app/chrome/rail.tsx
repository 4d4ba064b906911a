/** The left rail: which page, which run, which ranks. */

import type { RunsResponse, RunStanding, RunSummary } from "../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../base/bytes";
import { formatAgo, formatInstant } from "../../base/durations";
import { Status, type StatusLook } from "../../widgets/status/status";
import { PAGES, type PageName } from "../pages";
import { RankChooser, type RankChooserProps } from "./rank_chooser";

export interface RailProps {
  readonly runs: RunsResponse | null;
  readonly run: RunSummary | null;
  readonly page: PageName;
  readonly byteUnit: ByteUnit;
  readonly chooseRun: (id: string) => void;
  readonly choosePage: (page: PageName) => void;
  readonly ranks: RankChooserProps | null;
}

export function Rail(props: RailProps) {
  const { ranks, runs } = props;
  return (
    <nav class="rail" aria-label="Pages, runs and ranks">
      <PageList {...props} />
      <RunList {...props} />
      {ranks !== null && <RankChooser {...ranks} />}
      <p class="rail-foot quiet">MemBoard {runs?.pluginVersion ?? ""}</p>
    </nav>
  );
}

const STATUS_LOOKS: Readonly<Record<NonNullable<RunStanding["status"]>, StatusLook>> = {
  out_of_memory: { word: "out of memory", icon: "cross", tone: "bad" },
  leak: { word: "leak", icon: "warning", tone: "warn" },
  stopped: { word: "stopped", icon: "warning", tone: "warn" },
  live: { word: "live", icon: "check", tone: "ok" },
  fine: { word: "fine", icon: "check", tone: "ok" },
};

/** All runs, the one that needs a look most first; each is one click away. */
function RunList({ runs, run, byteUnit, chooseRun }: RailProps) {
  const byId = new Map(runs?.runs.map((one) => [one.id, one]));
  const many = byId.size > 1;
  return (
    <section class="rail-section">
      <h2>
        <span>{many ? "Runs" : "Run"}</span>
        {many && <span class="quiet">{formatInteger(byId.size)}</span>}
      </h2>
      {byId.size === 0 && <p class="quiet rail-note">none yet</p>}
      <ul class="runs" aria-label="Runs">
        {runs?.standings.map((standing) => {
          const one = byId.get(standing.run);
          if (one === undefined) return null;
          const { status, peakBytes } = standing;
          const isShown = one.id === run?.id;
          return (
            <li key={one.id}>
              <button
                type="button"
                class="run"
                aria-current={isShown ? "true" : undefined}
                title={[one.name, ...runFacts(one), newest(one)].join("\n")}
                onClick={() => chooseRun(one.id)}
              >
                <span class="run-name">{one.name}</span>
                <span class="run-peak" title="Peak">
                  {peakBytes === null ? "–" : formatBytes(peakBytes, byteUnit)}
                </span>
                <span class="run-standing">
                  {status !== null && <Status look={STATUS_LOOKS[status]} />}
                  {one.live && status !== "live" && <Status look={STATUS_LOOKS.live} />}
                  <span class="quiet">{kindOf(one)}</span>
                </span>
              </button>
            </li>
          );
        })}
      </ul>
      {run !== null && (
        <p class="quiet rail-note">
          {[
            ...runFacts(run),
            run.live ? "live" : formatAgo(run.lastMs, Date.now()),
          ].map((fact, i) => (
            <>
              {i > 0 && " · "}
              <span class="nowrap">{fact}</span>
            </>
          ))}
        </p>
      )}
    </section>
  );
}

function newest(run: RunSummary): string {
  return `Newest row: ${formatInstant(run.lastMs)}`;
}

const KINDS: Readonly<Record<RunSummary["madeOf"], string>> = {
  recording: "",
  snapshots: "snapshots",
  traces: "traces",
  memprofiler: "MemProfiler",
};

function kindOf(run: RunSummary): string {
  if (run.simulated) return "simulated";
  return run.virtualGpu === "" ? KINDS[run.madeOf] : "virtual";
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
