/** Profiles: the steps of one profiler's trace against those of another, role by role. */

import type { ProfileResponse, RunSummary } from "../../../api/types.gen";
import type { Live } from "../../../api/watch";
import { formatSeconds } from "../../../base/durations";
import type { ExportSource } from "../../../widgets/export/source";
import { ChartButton } from "../../../widgets/line_chart/chart_button";
import { Skeleton, Waiting } from "../../../widgets/state/state";
import { ROLE_HELP, ROLE_WORDS, roleColour } from "../../time/profiled/roles";
import {
  NoTraces,
  TraceChoice,
  TraceState,
  useProfiled,
} from "../../time/profiled/trace_choice";
import type { ViewProps } from "../../shared/view_props";
import { DifferenceTable, percentText, type DifferenceRow } from "../difference_table";
import { SAME_RUN } from "../../memory/history/params";
import type { CompareParams } from "../params";
import { ProfileTables } from "./tables";
import { meanStepMs, otherTrace, rolePairs } from "./profiles";
import { RunChoice } from "../side_bar";
import { useOtherRun } from "../sides";

export interface ProfilesPartProps {
  readonly view: ViewProps;
  readonly params: CompareParams;
  readonly exporter: { current: ExportSource | null };
}

/** The answer, once its trace is open. */
function ready({ data }: Live<ProfileResponse>): ProfileResponse | null {
  const isOpen = data?.choice.state === "ready" && data.choice.problem === null;
  return isOpen ? data : null;
}

export function ProfilesPart({ view, params, exporter }: ProfilesPartProps) {
  const { client, run, ranks, setParams, pollMs } = view;
  const other = useOtherRun(view, params.aRun, "same");
  const aRun = other.run ?? run;
  const sameRun = aRun.id === run.id;
  const [aWord, bWord] = [params.a.source, params.b.source];
  const rank = ranks.rank;
  const bQuery = { run: run.id, source: bWord === "" ? null : bWord, rank };
  const b = useProfiled(client, "profile", bQuery, pollMs);
  const bChoice = b.data?.choice ?? null;
  const bId = bChoice?.source ?? null;
  const untold = aWord === "" && sameRun;
  const aId =
    untold && bChoice !== null && bId !== null
      ? otherTrace(bChoice.traces, bId)
      : aWord === ""
        ? null
        : aWord;
  const aQuery = untold && aId === null ? null : { run: aRun.id, source: aId, rank };
  const a = useProfiled(client, "profile", aQuery, pollMs);
  if (bChoice?.numTraces === 0) return <NoTraces what="profiles to compare" />;
  const [aReady, bReady] = [ready(a), ready(b)];
  return (
    <>
      <div class="compare-sides compare-traces">
        <Side
          name="A"
          live={a}
          runs={other.runs}
          run={aRun}
          onRun={(id) =>
            setParams({ a_run: id === run.id ? SAME_RUN : id, a_source: null }, "push")
          }
          onSource={(a_source) => setParams({ a_source }, "push")}
        />
        <Side
          name="B"
          live={b}
          runs={[]}
          run={run}
          onRun={() => undefined}
          onSource={(source) => {
            // A stays what it is, also where nobody had chosen it.
            setParams({ source, a_source: a.data?.choice.source ?? null }, "push");
          }}
        />
        {sameRun && (
          <ChartButton
            label="Exchange A and B"
            icon="swap"
            onClick={() =>
              setParams(
                { source: a.data?.choice.source ?? null, a_source: bId },
                "push",
              )
            }
          />
        )}
      </div>
      <Way live={a} name="A" />
      <Way live={b} name="B" />
      {aReady !== null && bReady !== null && (
        <>
          <Roles a={aReady} b={bReady} view={view} />
          <ProfileTables
            key={params.table}
            view={view}
            params={params}
            exporter={exporter}
            a={aReady}
            b={bReady}
          />
        </>
      )}
    </>
  );
}

function Side(props: {
  readonly name: "A" | "B";
  readonly live: Live<ProfileResponse>;
  readonly runs: readonly RunSummary[];
  readonly run: RunSummary;
  readonly onRun: (run: string) => void;
  readonly onSource: (source: string) => void;
}) {
  const { name, live, runs, run, onRun } = props;
  const choice = live.data?.choice ?? null;
  return (
    <div class="history-bar compare-side" role="group" aria-label={`Side ${name}`}>
      <b class={`compare-letter is-${name}`}>{name}</b>
      <RunChoice runs={runs} run={run} onRun={onRun} />
      {choice?.numTraces === 0 && (
        <span class="quiet">This run has no profiler traces.</span>
      )}
      {choice !== null && choice.numTraces > 0 && (
        <TraceChoice choice={choice} onChoose={props.onSource} />
      )}
    </div>
  );
}

/** What stands in the way of a side: it is being opened, or cannot be. */
function Way(props: { readonly live: Live<ProfileResponse>; readonly name: string }) {
  const { data, error } = props.live;
  return (
    <>
      {data === null && error === null && <Skeleton heightPx={24} />}
      {data !== null && <TraceState choice={data.choice} />}
      <Waiting error={error} hasContent={data !== null} note={`Side ${props.name}.`} />
    </>
  );
}

function sideWords(name: string, { durationMs, areMarked }: ProfileResponse): string {
  const num = durationMs.length;
  if (!areMarked) return `${name} marks no steps: all of it counts as one`;
  return `${name}: mean of ${num} step${num === 1 ? "" : "s"}`;
}

interface SidesProps {
  readonly a: ProfileResponse;
  readonly b: ProfileResponse;
  readonly view: ViewProps;
}

function Roles({ a, b, view }: SidesProps) {
  const { theme, byteUnit } = view;
  const [aMs, bMs] = [meanStepMs(a), meanStepMs(b)];
  const by = bMs - aMs;
  const seconds = { unit: "seconds" as const };
  const rows: readonly DifferenceRow[] = [
    ...rolePairs(a, b).map((pair) => ({
      ...seconds,
      label: ROLE_WORDS[pair.role],
      hint: ROLE_HELP[pair.role],
      swatch: roleColour(theme, pair.role),
      a: pair.a / 1e3,
      b: pair.b / 1e3,
    })),
    { ...seconds, label: "whole step", a: aMs / 1e3, b: bMs / 1e3 },
  ];
  return (
    <section class="compare-numbers" aria-label="Time per step by role">
      <p class="compare-sentence">
        <strong>
          {by === 0
            ? "A step of B takes as long as one of A."
            : `A step of B takes ${formatSeconds(Math.abs(by) / 1e3)} ${by > 0 ? "longer" : "less"} than one of A (${percentText(aMs, bMs)}).`}
        </strong>{" "}
        <span class="quiet">
          {sideWords("A", a)} · {sideWords("B", b)}
        </span>
      </p>
      <DifferenceTable
        label="Time per step by role"
        groups={[{ title: "Time per step", rows }]}
        theme={theme}
        byteUnit={byteUnit}
      />
    </section>
  );
}
