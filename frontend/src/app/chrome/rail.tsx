import { useEffect, useRef } from "preact/hooks";
import type { RunSummary } from "../../api/types.gen";
import { counted, formatBytes, formatInteger } from "../../base/bytes";
import { formatAgo, formatInstant } from "../../base/durations";
import { kindOf, standingLook, STATUS_LOOKS } from "../../pages/shared/run_standing";
import { Status } from "../../widgets/icon/icon";
import { PAGES, tabsOf } from "../pages";
import type { Shell } from "../shell/shell";
import { RankChooser } from "./rank_chooser";

export function Rail(props: Pick<Shell, "address" | "openRun" | "pages">) {
  const { address, openRun, pages } = props;
  const { run, runs, strip } = openRun;
  return (
    <nav class="rail" aria-label="Pages, runs and ranks">
      <PageList pages={pages} openRun={openRun} />
      <RunList address={address} openRun={openRun} />
      {run !== null && run.numRanks > 0 && (
        <RankChooser address={address} strip={strip} numRanks={run.numRanks} />
      )}
      <p class="rail-foot small quiet">MemBoard {runs.data?.pluginVersion ?? ""}</p>
    </nav>
  );
}

function PageList({ pages, openRun }: Pick<Shell, "openRun" | "pages">) {
  return (
    <ul class="pages">
      {PAGES.map((page, i) => {
        const absent = tabsOf(page).map((tab) =>
          openRun.empty.find((emptyTab) => emptyTab.tab === tab.name),
        );
        const isEmpty = absent.every((emptyTab) => emptyTab !== undefined);
        return (
          <li key={page}>
            <button
              type="button"
              class={isEmpty ? "page-link is-empty" : "page-link"}
              title={isEmpty ? absent[0]?.how : undefined}
              aria-current={page === pages.tab.page ? "page" : undefined}
              onClick={() => pages.choosePage(page)}
            >
              {page}
              <kbd>{i + 1}</kbd>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** The run that most needs a look first. */
function RunList({ address, openRun }: Pick<Shell, "address" | "openRun">) {
  const { place, chooseRun } = address;
  const { run, strip } = openRun;
  const { data } = openRun.runs;
  const byId = new Map(data?.runs.map((summary) => [summary.id, summary]));
  const many = byId.size > 1;
  const chosen = useRef<HTMLButtonElement>(null);
  // The ranks below leave less room for the list.
  const hasRanks = strip !== null;
  useEffect(
    () => chosen.current?.scrollIntoView({ block: "nearest" }),
    [run?.id, hasRanks],
  );
  return (
    <section>
      <h2>
        <span>{many ? "Runs" : "Run"}</span>
        {many && <span class="quiet">{formatInteger(byId.size)}</span>}
      </h2>
      {byId.size === 0 && <p class="rail-note small quiet">none yet</p>}
      <ul class="runs" aria-label="Runs">
        {data?.standings.map(({ run: id, status, peakBytes, finding }) => {
          const summary = byId.get(id);
          if (summary === undefined) return null;
          const isChosen = id === run?.id;
          const look = standingLook({ status, finding });
          const newest = `Newest row: ${formatInstant(summary.lastMs)}`;
          return (
            <li key={id}>
              <button
                ref={isChosen ? chosen : null}
                type="button"
                class="run"
                aria-current={isChosen ? "true" : undefined}
                title={[
                  summary.name,
                  ...kindOf(summary),
                  ...runFacts(summary),
                  newest,
                ].join("\n")}
                onClick={() => chooseRun(id)}
              >
                <b class="run-name cut">{summary.name}</b>
                {peakBytes !== null && (
                  <span title="Peak">{formatBytes(peakBytes, place.unit)}</span>
                )}
                <span class="run-standing small">
                  {look !== null && <Status look={look} />}
                  {summary.live && status !== "live" && (
                    <Status look={STATUS_LOOKS.live} />
                  )}
                  <span class="quiet">{kindOf(summary)}</span>
                </span>
                {isChosen && <RunFacts of={summary} />}
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function RunFacts({ of }: { readonly of: RunSummary }) {
  const age = of.live ? [] : [formatAgo(of.lastMs, Date.now())];
  return (
    <span class="run-facts small quiet">
      {[...runFacts(of), ...age].map((fact, i) => (
        <>
          {i > 0 && " · "}
          <span class="nowrap">{fact}</span>
        </>
      ))}
    </span>
  );
}

const DEVICE_WORDS: Readonly<Record<string, string>> = {
  cpu: "no accelerator",
  "": "device not recorded",
};

function runFacts(run: RunSummary): readonly string[] {
  const { numProblems } = run;
  const unread = numProblems > 0 ? [`${counted(numProblems, "problem")} in files`] : [];
  if (run.madeOf !== "recording") return unread;
  const parts = [
    DEVICE_WORDS[run.deviceType] ?? run.deviceType,
    run.lastStep === null ? "no step yet" : `step ${formatInteger(run.lastStep)}`,
  ];
  if (run.numRanks < run.worldSize) {
    parts.push(`${formatInteger(run.numRanks)} of ${counted(run.worldSize, "rank")}`);
  }
  if (run.numAttempts > 1) parts.push(counted(run.numAttempts, "attempt"));
  return [...parts, ...unread];
}
