/**
 * Overview: what is wrong, how it went, the headline numbers; below them every rank's
 * peak, the profile, and folded what was recorded. With a rank chosen it is that rank's.
 */

import { useEffect, useState } from "preact/hooks";
import type {
  Finding,
  FindingsResponse,
  OverviewResponse,
  Prediction,
  ProfileResponse,
} from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { Live } from "../../api/watch";
import { formatInteger } from "../../base/bytes";
import { useCommands } from "../../base/use_commands";
import { originOf } from "../../model/words/origin";
import { Findings } from "../../widgets/finding/finding";
import { ProblemList } from "../../widgets/problem_list/problem_list";
import { Failure, Skeleton, Waiting } from "../../widgets/state/state";
import type { ViewProps } from "../shared/view_props";
import { overviewExports } from "./exports";
import { HeadlineCards } from "./headline_cards";
import { Hero } from "./hero";
import { ProfilePanel, useProfile } from "./profile_panel";
import { RankStripChart } from "./rank_strip";
import { RecordedPanels } from "./recorded_table";
import { Attempts, Facts } from "./run_details";
import { SnapshotFiles } from "./snapshot_files";
import { STRIP_ORDERS } from "../../widgets/rank_bars/layout";
import type { ByteUnit } from "../../base/bytes";
import { Status } from "../../widgets/status/status";
import { fitLook, fitSentences, ledgerRows } from "./prediction_rows";
import "./overview.css";

export function OverviewView(props: ViewProps) {
  const { client, run, ranks, commands } = props;
  const query = { run: run.id, rank: ranks.rank };
  const { data, stale, error } = useLive(client, "overview", query, props.pollMs);
  // One rank's page still shows it among all: the strip is that of the whole run.
  const all = useLive(
    client,
    "overview",
    ranks.rank === null ? null : { run: run.id },
    props.pollMs,
  );
  const found = useFindings(props);
  const profile = useProfile(props);
  useCommands(commands, () => overviewExports(data, props.say));
  if (data === null) {
    return error === null ? <Loading /> : <Failure failure={error} />;
  }
  return (
    <div class={stale ? "overview stale" : "overview"} aria-busy={stale}>
      <Waiting error={error} hasContent note="What was read before stays below." />
      <Body
        data={data}
        whole={all.data ?? data}
        found={found}
        profile={profile}
        {...props}
      />
    </div>
  );
}

/** While histories are being read their findings are asked for soon again. */
const READING_POLL_MS = 1_000;

function useFindings({
  client,
  run,
  ranks,
  pollMs,
}: ViewProps): Live<FindingsResponse> {
  const [reads, setReads] = useState(false);
  const query = { run: run.id, rank: ranks.rank };
  const poll = reads ? Math.min(pollMs, READING_POLL_MS) : pollMs;
  const found = useLive(client, "findings", query, poll);
  const stillReading = found.data?.stillReading ?? false;
  useEffect(() => {
    setReads(stillReading);
  }, [stillReading]);
  return found;
}

function Loading() {
  return (
    <div class="overview">
      <Skeleton heightPx={32} />
      <Skeleton heightPx={136} />
      <Skeleton heightPx={220} />
    </div>
  );
}

function Body(
  props: ViewProps & {
    readonly data: OverviewResponse;
    /** The answer for all ranks, where `data` is one rank's. */
    readonly whole: OverviewResponse;
    readonly found: Live<FindingsResponse>;
    readonly profile: Live<ProfileResponse>;
  },
) {
  const { strip } = props.whole;
  const { data, ranks, theme, byteUnit, chooseRank, params, setParams } = props;
  const order = STRIP_ORDERS.find((one) => one === params.get("sort")) ?? "rank";
  // Of an import there are histories, and no rows that a peak could be drawn from.
  const isRecording = data.run.madeOf === "recording";
  const hasPeaks = isRecording && strip.peakBytes.some(Number.isFinite);
  return (
    <>
      <WhatWasFound view={props} live={props.found} profile={props.profile.data} />
      {isRecording ? (
        <Hero view={props} known={strip.rank} />
      ) : (
        <SnapshotFiles
          view={props}
          blamed={(props.found.data?.findings ?? []).flatMap(({ line }) =>
            line === "" ? [] : [line],
          )}
        />
      )}
      {data.prediction !== null && (
        <PredictionLedger prediction={data.prediction} byteUnit={byteUnit} />
      )}
      {isRecording && (
        <HeadlineCards
          headlines={data.headlines}
          whole={props.whole.headlines}
          byteUnit={byteUnit}
          rank={ranks.rank}
          chooseRank={chooseRank}
        />
      )}
      {strip.rank.length > 1 && hasPeaks && (
        <RankStripChart
          strip={strip}
          choice={ranks}
          theme={theme}
          byteUnit={byteUnit}
          order={order}
          setOrder={(sort) => setParams({ sort: sort === "rank" ? null : sort })}
          chooseRank={chooseRank}
          setPinned={props.setPinned}
          origin={originOf(data.run)}
        />
      )}
      <ProfilePanel view={props} live={props.profile} />
      <Problems of={[data, props.found.data]} />
      <RunInfo data={data} whole={props.whole} />
    </>
  );
}

function WhatWasFound(props: {
  readonly view: ViewProps;
  readonly live: Live<FindingsResponse>;
  readonly profile: ProfileResponse | null;
}) {
  const { data, error } = props.live;
  if (data === null) {
    return error === null ? <Skeleton heightPx={64} /> : <Failure failure={error} />;
  }
  const listed = data.findings.filter((one) => one.state?.isOutOfMemory === true);
  const left = data.numErrors - listed.length;
  return (
    <div>
      <Findings
        {...props.view}
        findings={merged(data.findings, props.profile?.findings ?? [])}
        opensFirst
      />
      {data.stillReading && (
        <p class="quiet" role="status">
          Analysing the allocator’s history; causes and their numbers may change.
        </p>
      )}
      {left > 0 && (
        <p class="quiet">And {formatInteger(left)} more out-of-memory errors.</p>
      )}
    </div>
  );
}

const SEVERITIES: readonly Finding["severity"][] = ["error", "warning", "info"];

/** One list, the worst first. What steps say of a rank a trace need not repeat. */
export function merged(
  own: readonly Finding[],
  ofTrace: readonly Finding[],
): readonly Finding[] {
  const isNews = (one: Finding): boolean =>
    !own.some((other) => other.title === one.title && other.rank === one.rank);
  return [...own, ...ofTrace.filter(isNews)].sort(
    (a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity),
  );
}

/** Where all of it comes from; nobody needs it to see what is wrong. */
function RunInfo(props: {
  readonly data: OverviewResponse;
  readonly whole: OverviewResponse;
}) {
  const { data, whole } = props;
  const isRecording = data.run.madeOf === "recording";
  return (
    <details class="run-info">
      <summary>Run info</summary>
      {isRecording ? (
        <>
          {data.planted.length > 0 && <Planted faults={data.planted} />}
          <RecordedPanels
            recorded={data.recorded}
            whole={whole.recorded}
            numRanks={data.rank === null ? whole.strip.rank.length : 1}
          />
          <div class="columns">
            <Attempts attempts={data.attempts} />
            {data.facts.length > 0 && <Facts facts={data.facts} rank={data.rank} />}
          </div>
        </>
      ) : (
        <p>{data.recorded.map((one) => `${one.reason} ${one.remedy}`).join(" ")}</p>
      )}
    </details>
  );
}

/** Files that the index or the analysis of histories could not read, each once. */
function Problems(props: {
  readonly of: readonly (OverviewResponse | FindingsResponse | null)[];
}) {
  const every = props.of.flatMap((answer) => answer?.problems ?? []);
  const problems = [
    ...new Map(every.map((one) => [`${one.path}\n${one.what}`, one])).values(),
  ];
  if (problems.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="problems-title">
      <header class="panel-head">
        <h2 id="problems-title">Files that could not be read whole</h2>
      </header>
      <ProblemList problems={problems} />
    </section>
  );
}

function Planted({ faults }: { readonly faults: readonly string[] }) {
  return (
    <section class="planted" aria-labelledby="planted-title">
      <h2 id="planted-title">Faults planted in this simulation</h2>
      <ul>
        {faults.map((fault) => (
          <li key={fault}>{fault}</li>
        ))}
      </ul>
    </section>
  );
}

/** Whether a run on a virtual GPU would fit a real one, and what that is made of. */
function PredictionLedger(props: {
  readonly prediction: Prediction;
  readonly byteUnit: ByteUnit;
}) {
  const { prediction, byteUnit } = props;
  return (
    <section class="panel prediction" aria-labelledby="prediction-title">
      <header class="panel-head">
        <h2 id="prediction-title">Will it fit?</h2>
        <Status look={fitLook(prediction)} />
      </header>
      {fitSentences(prediction).map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      <div class="table-scroll">
        <table class="data-table">
          <tbody>
            {ledgerRows(prediction, byteUnit).map((row) => (
              <tr key={row.label} class={row.isTotal ? "total" : ""}>
                <th scope="row">{row.label}</th>
                <td class="num">{row.size}</td>
                <td class="quiet nowrap">{row.mark}</td>
                <td class="quiet">{row.source}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
