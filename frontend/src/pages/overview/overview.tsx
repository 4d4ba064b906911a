import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type {
  Finding,
  FindingsResponse,
  OverviewResponse,
  Prediction,
  ProfileResponse,
} from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import type { Live } from "../../api/live/watch";
import { counted, formatByteRange, type ByteUnit } from "../../base/bytes";
import type { Table } from "../../model/table";
import { originOf } from "../../model/words/origin";
import { asSentence } from "../../model/words/source_label";
import { useExports } from "../../widgets/export/export_menu";
import { Findings } from "../../widgets/finding/finding";
import { useWidth } from "../../widgets/plot/canvas";
import type { XRange } from "../../widgets/plot/range";
import { ProblemList } from "../../widgets/problem_list/problem_list";
import { tableOf } from "../../widgets/row_table/columns";
import { Facts } from "../../widgets/facts/facts";
import { Waiting } from "../../widgets/state/state";
import { Status, type StatusLook } from "../../widgets/icon/icon";
import { TextButton } from "../shared/controls/choices";
import { readState } from "../shared/page_state";
import { TIMELINE } from "../shared/series/params";
import { RankMap } from "../shared/series/rank_map";
import { SeriesBelow } from "../shared/series/series_chart";
import type { ViewProps } from "../shared/view_props";
import { columnsOf } from "../shared/table/columns";
import { HeadlineCards } from "./headline_cards";
import { PeakPanel } from "./peak_panel";
import { ProfilePanel, useProfile } from "./profile_panel";
import { RankStripChart } from "./rank_strip";
import { Panel, RunInfo } from "./run_info";
import { SnapshotFiles } from "./snapshot_files";
import { StepPanel } from "./step_panel";
import "./overview.css";

export function OverviewView(props: ViewProps) {
  const { client, run, ranks, pollMs } = props;
  const query = { run: run.id, rank: ranks.rank };
  const { data, stale, error } = useLive(client, "overview", query, pollMs);
  const findings = useLive(client, "findings", query, pollMs);
  const profile = useProfile(props);
  useTableExports(props, data, "table of ranks", rankTable);
  useTableExports(props, data, "table of headline numbers", headlineTable);
  if (data === null) {
    return (
      <div class="overview">
        <Waiting error={error} hasContent={false} blocksPx={[32, 136, 220]} />
      </div>
    );
  }
  const { strip } = data;
  // An import has histories, but no rows to draw a peak from.
  const isRecording = data.run.madeOf === "recording";
  const hasPeaks = isRecording && strip.peakBytes.some(Number.isFinite);
  const blamed = (findings.data?.findings ?? []).map(({ line }) => line);
  return (
    <div
      class={`overview ${stale ? "stale" : ""} ${findings.data === null ? "is-early" : ""}`}
      aria-busy={stale}
    >
      <Waiting error={error} hasContent note="What was read before stays below." />
      <WhatWasFound
        key={`${run.id} ${ranks.rank ?? ""}`}
        view={props}
        live={findings}
        profile={profile}
        ranOut={strip.numOoms.some((num) => num > 0)}
      />
      {isRecording ? (
        <Hero view={props} allRanks={strip.rank} />
      ) : (
        <SnapshotFiles view={props} blamed={blamed.filter((line) => line !== "")} />
      )}
      {data.prediction !== null && (
        <PredictionLedger prediction={data.prediction} byteUnit={props.byteUnit} />
      )}
      {isRecording && <HeadlineCards view={props} headlines={data.headlines} />}
      {data.run.madeOf !== "traces" && (
        <Pictures view={props} isRecording={isRecording} />
      )}
      {strip.rank.length > 1 && hasPeaks && (
        <RankStripChart view={props} strip={strip} />
      )}
      <ProfilePanel view={props} live={profile} />
      <Problems of={[data, findings.data, { problems: data.logdirProblems }]} />
      <RunInfo view={props} data={data} />
    </div>
  );
}

const MOST_PX = 216;
const LINE_PX = 176;
/** With fewer ranks there is no median rank: they are drawn as lines. */
const FEWEST = 3;
/** Defaults, not the Timeline's choices. */
const PARAMS = readState(TIMELINE, new Map());

/**
 * Several ranks: how far each is from the others, with failures marked; one rank: its
 * memory over the run.
 */
function Hero(props: {
  readonly view: ViewProps;
  /** All ranks of the run. */
  readonly allRanks: Int32Array;
}) {
  const { view, allRanks } = props;
  const box = useRef<HTMLDivElement>(null);
  const px = useWidth(box);
  const [range, setRange] = useState<XRange | null>(null);
  const { rank } = view.ranks;
  return (
    <div ref={box} class="hero">
      {rank === null && allRanks.length >= FEWEST ? (
        <RankMap
          view={view}
          params={PARAMS}
          allRanks={allRanks}
          shared={{ range, setRange }}
          onPick={(picked) => view.chooseRank(picked)}
          px={px}
          excess
          mostPx={MOST_PX}
        />
      ) : (
        <SeriesBelow
          view={view}
          params={PARAMS}
          series=""
          range={{ shown: range, settled: null, setRange, px }}
          heightPx={LINE_PX}
          legend={rank === null && allRanks.length > 1 && "bar"}
        />
      )}
    </div>
  );
}

/** What the peak is made of beside what a step takes; room is kept until both are known. */
function Pictures(props: { readonly view: ViewProps; readonly isRecording: boolean }) {
  const { view, isRecording } = props;
  const { client, run, ranks, pollMs } = view;
  const query = { run: run.id, rank: ranks.rank };
  const peak = useLive(client, "peak_composition", query, pollMs);
  const steps = useLive(client, "stragglers", isRecording ? query : null, pollMs);
  const isKnown = [peak, steps].every(
    ({ data, error }) => data !== null || error !== null,
  );
  return (
    <div class={isRecording && !isKnown ? "picture is-early" : "picture"}>
      {peak.data !== null && <PeakPanel view={view} answer={peak.data} />}
      {steps.data !== null && <StepPanel view={view} answer={steps.data} />}
    </div>
  );
}

const LOOKS: Readonly<Record<Prediction["fit"], StatusLook>> = {
  fits: { word: "Fits", icon: "check", tone: "ok" },
  "does not fit": { word: "Does not fit", icon: "cross", tone: "bad" },
  "too close to call": { word: "Too close to call", icon: "warning", tone: "warn" },
  "cannot say": { word: "Cannot say", icon: "info", tone: "quiet" },
};

function PredictionLedger(props: {
  readonly prediction: Prediction;
  readonly byteUnit: ByteUnit;
}) {
  const { fit, sentences, rows } = props.prediction;
  return (
    <section class="panel prediction" aria-labelledby="prediction-title">
      <header class="panel-head">
        <h2 id="prediction-title">Will it fit?</h2>
        <Status look={LOOKS[fit]} />
      </header>
      {sentences.map((sentence) => (
        <p key={sentence}>{asSentence(sentence)}</p>
      ))}
      <Facts
        label="What it is made of"
        numeric
        rows={rows.map(({ label, lowBytes: low, highBytes: high, isTotal, ...row }) => [
          strong(isTotal, label),
          strong(
            isTotal,
            low === null || high === null
              ? "–"
              : formatByteRange(low, high, props.byteUnit),
          ),
          [row.mark, row.source].filter(Boolean).join(", "),
        ])}
      />
    </section>
  );
}

function strong(isTotal: boolean, text: string) {
  return isTotal ? <b>{text}</b> : text;
}

/** Whether anything was pressed or scrolled: from then on nothing moves by itself. */
function useInUse(): { readonly current: boolean } {
  const isInUse = useRef(false);
  useEffect(() => {
    const note = (): void => {
      isInUse.current = true;
    };
    const kinds = ["pointerdown", "wheel", "keydown"] as const;
    for (const kind of kinds) addEventListener(kind, note, { passive: true });
    return () => {
      for (const kind of kinds) removeEventListener(kind, note);
    };
  }, []);
  return isInUse;
}

const FINDING_PX = 64;
/** Of an out-of-memory error with its holders and advice, whose texts wrap. */
const OOM_AREA_PX = 393_000;
/** Where none of its texts wraps. */
const OOM_LEAST_PX = 264;

function oomPx(widthPx: number): number {
  return Math.max(OOM_LEAST_PX, Math.round(OOM_AREA_PX / Math.max(widthPx, 1)));
}

function WaitingForFindings(
  props: Pick<Live<FindingsResponse>, "error"> & {
    readonly ranOut: boolean;
  },
) {
  const box = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(box);
  const heightPx = props.ranOut && widthPx > 0 ? oomPx(widthPx) : FINDING_PX;
  return (
    <div ref={box}>
      <Waiting error={props.error} hasContent={false} blocksPx={[heightPx]} />
    </div>
  );
}

function WhatWasFound(props: {
  readonly view: ViewProps;
  readonly live: Live<FindingsResponse>;
  readonly profile: Live<ProfileResponse>;
  readonly ranOut: boolean;
}) {
  const { data, error } = props.live;
  const { profile } = props;
  const isInUse = useInUse();
  if (data === null || (profile.data === null && profile.error === null)) {
    return <WaitingForFindings error={error} ranOut={props.ranOut} />;
  }
  return <FoundSoFar view={props.view} data={data} profile={profile} inUse={isInUse} />;
}

function FoundSoFar(props: {
  readonly view: ViewProps;
  readonly data: FindingsResponse;
  readonly profile: Live<ProfileResponse>;
  readonly inUse: { readonly current: boolean };
}) {
  const { data, profile, inUse } = props;
  const isTraceRead =
    profile.error !== null || profile.data?.choice.state !== "opening";
  const isReading = data.stillReading || !isTraceRead;
  const wasReading = useRef(false);
  wasReading.current ||= isReading;
  const [takesTrace, setTakesTrace] = useState(isTraceRead);
  if (isTraceRead && !takesTrace && !inUse.current) setTakesTrace(true);
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    // What is analysed may get shorter; a press may fold it.
    if (box.current !== null && isReading) {
      const { offsetHeight, offsetWidth } = box.current;
      const isEarly = shown.some(({ state }) => state?.analysed === false);
      const leastPx = isEarly ? oomPx(offsetWidth) : 0;
      box.current.style.minHeight = `${Math.max(leastPx, offsetHeight)}px`;
    }
  });
  const all = merged(data.findings, profile.data?.findings ?? []);
  const shown = takesTrace ? all : merged(data.findings, []);
  const numLate = all.length - shown.length;
  const listed = data.findings.filter(
    (finding) => finding.state?.isOutOfMemory === true,
  );
  const left = data.numErrors - listed.length;
  return (
    <div
      ref={box}
      class="findings-box"
      onClick={() => box.current?.style.removeProperty("min-height")}
    >
      <Findings {...props.view} findings={shown} opensFirst />
      {wasReading.current && (
        // Stays when all is read: an empty box keeps its gap above what is below.
        <p class="findings-progress quiet" role="status">
          {isReading
            ? "Analysing histories and traces; causes and their numbers may change."
            : numLate > 0 && (
                <TextButton press={() => setTakesTrace(true)}>
                  Show {counted(numLate, "finding")} of the trace
                </TextButton>
              )}
        </p>
      )}
      {left > 0 && (
        <p class="quiet">And {counted(left, "more out-of-memory error")}.</p>
      )}
    </div>
  );
}

const SEVERITIES: readonly Finding["severity"][] = ["error", "warning", "info"];

/** Worst first. Trace findings that repeat a rank's step findings are dropped. */
export function merged(
  own: readonly Finding[],
  ofTrace: readonly Finding[],
): readonly Finding[] {
  const isNews = (finding: Finding): boolean =>
    !own.some((other) => other.title === finding.title && other.rank === finding.rank);
  return [...own, ...ofTrace.filter(isNews)].sort(
    (a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity),
  );
}

function Problems(props: {
  readonly of: readonly (Pick<OverviewResponse, "problems"> | null)[];
}) {
  const every = props.of.flatMap((answer) => answer?.problems ?? []);
  const problems = new Map(
    every.map((problem) => [`${problem.path}\n${problem.what}`, problem]),
  );
  if (problems.size === 0) return null;
  return (
    <Panel title="Files that could not be read whole">
      <ProblemList problems={[...problems.values()]} />
    </Panel>
  );
}

function useTableExports(
  view: ViewProps,
  data: OverviewResponse | null,
  subject: string,
  table: (of: OverviewResponse) => Table,
): void {
  const source = data && {
    origin: originOf(data.run),
    name: data.rank === null ? subject : `rank ${data.rank} ${subject}`,
    table: () => table(data),
    about: () => ({ rank: data.rank }),
  };
  useExports(view, `the ${subject}`, source);
}

function rankTable({ strip }: OverviewResponse): Table {
  const columns = columnsOf(strip.table, { theme: "light", byteUnit: "auto" });
  return tableOf(columns, [...strip.rank.keys()]);
}

function headlineTable({ headlines }: OverviewResponse): Table {
  return {
    numRows: headlines.length,
    columns: [
      { name: "headline", values: headlines.map((headline) => headline.key) },
      { name: "value", values: headlines.map((headline) => headline.value ?? NaN) },
      { name: "unit", values: headlines.map((headline) => headline.unit) },
      { name: "rank", values: headlines.map((headline) => headline.rank ?? NaN) },
      { name: "step", values: headlines.map((headline) => headline.step ?? NaN) },
      {
        name: "caveats",
        values: headlines.map((headline) => headline.caveats.join("; ")),
      },
      {
        name: "absent_reason",
        values: headlines.map((headline) => headline.absentReason ?? ""),
      },
    ],
  };
}
