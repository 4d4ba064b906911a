/** A and B: two runs or ranks by their numbers, two moments by what lives in them. */

import type {
  CompareResponse,
  CompareRunsResponse,
  HistoryDevice,
} from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { useOnce } from "../../api/use_once";
import { formatBytes } from "../../base/bytes";
import { originOf } from "../../model/words/origin";
import { ExportMenu } from "../../widgets/export/export_menu";
import type { ExportSource } from "../../widgets/export/source";
import { ChartButton } from "../../widgets/line_chart/chart_button";
import { Failure, Nothing, Skeleton, Waiting } from "../../widgets/state/state";
import { NoHistory, Opening, OpeningFailed } from "../memory/history/opening";
import {
  chosenDevice,
  chosenHistory,
  useHistory,
  type FollowedHistory,
} from "../memory/history/use_history";
import type { ViewProps } from "../shared/view_props";
import { ChangeFlame } from "./charts/flame_part";
import { Overlay } from "./charts/overlay_part";
import { Waterfall } from "./charts/waterfall_part";
import { DifferenceTable, differenceTable, percentText } from "./difference_table";
import { groupsOf, momentWords, partsOf } from "./groups";
import { SAME_RUN } from "../memory/history/params";
import type { CompareParams } from "./params";
import { Rows } from "./rows/part";
import { SideBar } from "./side_bar";
import { lastMoment, otherHistory, useOtherRun } from "./sides";

interface TwoProps {
  readonly view: ViewProps;
  readonly params: CompareParams;
  readonly exporter: { current: ExportSource | null };
}

/** What the parts of a difference of two moments share. */
export interface DifferenceProps extends TwoProps {
  readonly answer: CompareResponse;
  readonly a: HistoryDevice;
  readonly b: HistoryDevice;
}

export function Two({ view, params, exporter }: TwoProps) {
  const { client, run, byteUnit, setParams, pollMs } = view;
  const other = useOtherRun(view, params.aRun, "before");
  const aRun = other.run;
  const sameRun = aRun?.id === run.id;
  const bRank = view.ranks.rank;
  const aRank =
    params.aRank === "all" ? null : (params.aRank ?? (sameRun ? null : bRank));
  const recorded = aRun?.madeOf === "recording" && run.madeOf === "recording";
  const asked = recorded && !(sameRun && aRank === bRank);
  const numbers = useLive(
    client,
    "compare_runs",
    asked ? { run: aRun.id, rank: aRank, b_run: run.id, b_rank: bRank } : null,
    pollMs,
  );
  const bList = useLive(client, "histories", { run: run.id }, pollMs);
  const aList = useLive(
    client,
    "histories",
    sameRun || aRun === null ? null : { run: aRun.id },
    pollMs,
  );
  const bHistories = bList.data;
  const aHistories = sameRun
    ? bHistories
    : aList.data?.run.id === aRun?.id
      ? aList.data
      : null;
  const bId = bHistories === null ? "" : chosenHistory(bHistories, params.b.history);
  const aId =
    aHistories === null
      ? ""
      : params.a.history !== ""
        ? chosenHistory(aHistories, params.a.history)
        : otherHistory(aHistories, bId, sameRun);
  const both = aId !== "" && bId !== "";
  const a = useHistory(client, aRun?.id ?? run.id, both ? aId : null);
  const b = useHistory(client, run.id, both ? bId : null);
  const bFacts = b.answer?.facts ?? null;
  const aFacts = a.answer?.facts ?? null;
  const bDevice = chosenDevice(bFacts, params.b.device);
  // Unless it was chosen, A is of the same device as B.
  const aDevice = chosenDevice(aFacts, params.a.device ?? bDevice?.device ?? null);
  const same = aId === bId && sameRun && aDevice?.device === bDevice?.device;
  const untold =
    params.a.moment === null && params.a.history === "" && params.b.moment === null;
  const aMoment =
    same && untold && aDevice !== null ? lastMoment(aDevice) : params.a.moment;
  const live = useOnce(
    client,
    "compare",
    aRun !== null && aDevice !== null && bDevice !== null
      ? {
          run: aRun.id,
          history: aId,
          device: aDevice.device,
          moment: aMoment,
          b_run: run.id,
          b_history: bId,
          b_device: bDevice.device,
          b_moment: params.b.moment,
          match: params.match === "exact" ? null : params.match,
        }
      : null,
  );
  const figures = asked ? numbers.data : null;
  const moments = both ? live.data : null;
  const none = aHistories?.histories.length === 0 || bHistories?.histories.length === 0;
  const text = (value: number | null): string | null => value?.toString() ?? null;
  const sides = (
    <div class="compare-sides">
      <SideBar
        name="A"
        runs={other.runs}
        run={aRun ?? run}
        onRun={(id) => {
          const a_run = id === run.id ? SAME_RUN : id;
          const of_run = { a_history: null, a_device: null, a_moment: null };
          setParams({ a_run, a_rank: null, ...of_run }, "push");
        }}
        rank={aRank}
        onRank={(rank) => setParams({ a_rank: rank?.toString() ?? "all" }, "push")}
        histories={both ? aHistories : null}
        history={aId}
        onHistory={(a_history) =>
          setParams({ a_history, a_device: null, a_moment: null }, "push")
        }
        facts={aFacts}
        device={aDevice}
        onDevice={(device) =>
          setParams({ a_device: device.toString(), a_moment: null }, "push")
        }
        moment={aMoment}
        onMoment={(moment) => setParams({ a_moment: text(moment), a_history: aId })}
        byteUnit={byteUnit}
      />
      <SideBar
        name="B"
        runs={[]}
        run={run}
        onRun={() => undefined}
        rank={bRank}
        onRank={view.chooseRank}
        histories={both ? bHistories : null}
        history={bId}
        onHistory={(history) => {
          // A stays what it is, also where nobody had chosen it.
          const a_history = aId;
          setParams({ history, history_device: null, moment: null, a_history }, "push");
        }}
        facts={bFacts}
        device={bDevice}
        onDevice={(device) =>
          setParams({ history_device: device.toString(), moment: null }, "push")
        }
        moment={params.b.moment}
        onMoment={(moment) => setParams({ moment: text(moment), a_history: aId })}
        byteUnit={byteUnit}
      />
      {sameRun && both && (
        <ChartButton
          label="Exchange A and B"
          icon="swap"
          onClick={() =>
            setParams(
              {
                history: aId,
                history_device: text(aDevice?.device ?? null),
                moment: text(aMoment),
                a_history: bId,
                a_device: text(bDevice?.device ?? null),
                a_moment: text(params.b.moment),
              },
              "push",
            )
          }
        />
      )}
    </div>
  );
  const error = numbers.error ?? bList.error ?? aList.error;
  const waits =
    (asked && numbers.data === null) || (both && moments === null && figures === null);
  return (
    <>
      {sides}
      <Waiting error={error} hasContent={figures !== null || bHistories !== null} />
      <Way of={a} name="A" byteUnit={byteUnit} />
      {!same && <Way of={b} name="B" byteUnit={byteUnit} />}
      <Waiting
        error={live.error}
        hasContent={moments !== null}
        note="It is asked again by itself."
      />
      {waits && error === null && live.error === null && <Skeleton heightPx={520} />}
      {(figures !== null || moments !== null) && (
        <Summary
          view={view}
          exporter={exporter}
          figures={figures}
          moments={moments}
          sameRun={sameRun}
          stale={numbers.stale}
        />
      )}
      {moments !== null && aDevice !== null && bDevice !== null && (
        <Moments
          view={view}
          params={params}
          exporter={exporter}
          answer={moments}
          a={aDevice}
          b={bDevice}
        />
      )}
      {!asked && none && <Alone view={view} histories={bHistories} />}
    </>
  );
}

/** One sentence, the numbers beside each other, and the way from A to B. */
function Summary(props: {
  readonly view: ViewProps;
  readonly exporter: { current: ExportSource | null };
  readonly figures: CompareRunsResponse | null;
  readonly moments: CompareResponse | null;
  readonly sameRun: boolean;
  readonly stale: boolean;
}) {
  const { view, figures, moments, sameRun } = props;
  const { theme, byteUnit } = view;
  const groups = groupsOf(figures, moments, theme);
  const parts = partsOf(figures, moments).filter(
    ({ a, b }) => a.length > 0 && a.every(Number.isFinite) && b.every(Number.isFinite),
  );
  const source: ExportSource = {
    origin: originOf(view.run),
    name: "comparison",
    table: () => differenceTable(groups),
    about: () => ({
      a: figures?.a.run.name ?? moments?.a.run.name ?? null,
      b: figures?.b.run.name ?? moments?.b.run.name ?? null,
      sentence: figures?.sentence ?? null,
    }),
  };
  props.exporter.current = source;
  return (
    <>
      <p class="compare-sentence" role="status">
        <strong>{figures?.sentence ?? momentsSentence(moments, byteUnit)}</strong>
        {moments !== null && figures === null && (
          <span class="quiet">
            {" "}
            A: {momentWords(moments.a)} · B: {momentWords(moments.b)}
          </span>
        )}
      </p>
      <div class={`compare-top${props.stale ? " stale" : ""}`}>
        <section class="compare-numbers" aria-label="The difference">
          <DifferenceTable
            label="A and B"
            groups={groups}
            {...(sameRun || figures === null
              ? {}
              : { names: [figures.a.run.name, figures.b.run.name] as const })}
            theme={theme}
            byteUnit={byteUnit}
          />
          <ExportMenu subject="the comparison" source={source} />
        </section>
        {parts.length > 0 ? (
          <Waterfall view={view} parts={parts} />
        ) : (
          <p class="quiet">
            For categories and modules at the peak, record both runs with{" "}
            <code>modules=True</code>; for lines, with <code>history=True</code>.
          </p>
        )}
      </div>
    </>
  );
}

function momentsSentence(
  moments: CompareResponse | null,
  byteUnit: ViewProps["byteUnit"],
): string {
  if (moments === null) return "";
  const [a, b] = [moments.a.activeBytes, moments.b.activeBytes];
  if (a === b) return "B holds as much as A.";
  const by = formatBytes(Math.abs(b - a), byteUnit);
  return `B holds ${by} ${b > a ? "more" : "less"} than A (${percentText(a, b)}).`;
}

/** Two moments line by line: timelines, flame graph, table. */
function Moments(props: DifferenceProps) {
  return (
    <>
      <Overlay {...props} />
      <ChangeFlame {...props} />
      <Rows {...props} />
    </>
  );
}

/** There is nothing to compare with yet. */
function Alone(props: {
  readonly view: ViewProps;
  readonly histories: Parameters<typeof NoHistory>[0]["histories"] | null;
}) {
  const { view, histories } = props;
  if (view.run.madeOf !== "recording") {
    return histories === null ? null : (
      <NoHistory histories={histories} rank={null} showAllRanks={() => undefined} />
    );
  }
  return (
    <Nothing title="There is no other run to compare with">
      <p>
        Record a second run into this log directory: it is compared with the one before
        it. {view.run.numRanks > 1 && "Or choose a rank for A or B."}
      </p>
    </Nothing>
  );
}

/** What stands in the way of a side: it is being opened, or cannot be. */
function Way({
  of,
  name,
  byteUnit,
}: {
  readonly of: FollowedHistory;
  readonly name: string;
  readonly byteUnit: ViewProps["byteUnit"];
}) {
  const { answer, error } = of;
  if (answer === null) {
    return error === null ? null : <Failure failure={error} note={`Side ${name}.`} />;
  }
  if (answer.state === "failed")
    return <OpeningFailed answer={answer} again={of.again} />;
  if (answer.state === "ready") return null;
  return <Opening answer={answer} byteUnit={byteUnit} />;
}
