/** A and B: two runs or ranks by their numbers, two moments by what lives in them. */

import type {
  CompareResponse,
  CompareRunsResponse,
  HistoryDevice,
} from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { useOnce } from "../../api/use_once";
import { originOf } from "../../model/words/origin";
import { ExportMenu } from "../../widgets/export/export_menu";
import { ChartButton } from "../../widgets/plot/buttons";
import { Failure, Nothing, Skeleton, Waiting } from "../../widgets/state/state";
import { NoHistory, Opening, OpeningFailed } from "../memory/history/opening";
import {
  chosenDevice,
  chosenHistory,
  useHistory,
  type FollowedHistory,
} from "../memory/history/use_history";
import { ChangeFlame } from "./charts/flame_part";
import { Overlay } from "./charts/overlay_part";
import { Waterfall } from "./charts/waterfall_part";
import { DifferenceTable, differenceTable } from "./difference_table";
import { groupsOf, partsOf } from "./groups";
import type { PartProps } from "./params";
import { MomentRows } from "./rows";
import {
  historyOfA,
  HistorySide,
  lastMoment,
  RankChoice,
  SideFrame,
  useOtherRun,
} from "./sides";

/** What the parts of a difference of two moments share. */
export interface DifferenceProps extends PartProps {
  readonly answer: CompareResponse;
  readonly a: HistoryDevice;
  readonly b: HistoryDevice;
}

export function Two(part: PartProps) {
  const { view, params, change } = part;
  const { client, run, byteUnit, pollMs } = view;
  const bRank = view.ranks.rank;
  const ofB = { run: run.id, rank: bRank };
  const bList = useLive(client, "histories", ofB, pollMs);
  // A recording has numbers of its own; a file is first set against its neighbours.
  const hasOthers =
    run.madeOf !== "recording" && (bList.data?.histories.length ?? 2) > 1;
  const other = useOtherRun(part, hasOthers);
  const aRun = other.run;
  const sameRun = aRun?.id === run.id;
  const aRank =
    params.aRank === "" ? (sameRun ? null : bRank) : rankNamed(params.aRank);
  const isOneList = sameRun && aRank === bRank;
  const ofA = aRun === null || isOneList ? null : { run: aRun.id, rank: aRank };
  const aList = useLive(client, "histories", ofA, pollMs);
  const recorded = aRun?.madeOf === "recording" && run.madeOf === "recording";
  const asked = recorded && !isOneList;
  const numbers = useLive(
    client,
    "compare_runs",
    asked ? { run: aRun.id, rank: aRank, b_run: run.id, b_rank: bRank } : null,
    pollMs,
  );
  const bHistories = bList.data;
  const known = isOneList ? bHistories : aList.data;
  const aHistories = known?.run.id === aRun?.id ? known : null;
  const bId = bHistories === null ? "" : chosenHistory(bHistories, params.b.history);
  const aId =
    aHistories === null
      ? ""
      : historyOfA(aHistories, params.a.history, sameRun ? bId : null);
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
  const error = numbers.error ?? bList.error ?? aList.error;
  const waits =
    (asked && numbers.data === null) || (both && moments === null && figures === null);
  return (
    <>
      <div class="row">
        <SideFrame name="A" run={other.choice}>
          <RankChoice
            run={aRun ?? run}
            rank={aRank}
            onRank={(rank) => change({ aRank: rank?.toString() ?? "all" }, "push")}
          />
          <HistorySide
            view={view}
            name="A"
            histories={both ? aHistories : null}
            history={aId}
            facts={aFacts}
            device={aDevice}
            moment={aMoment}
            set={(to, how) => change({ a: { ...params.a, history: aId, ...to } }, how)}
          />
        </SideFrame>
        <SideFrame name="B" run={<b>{run.name}</b>}>
          <RankChoice run={run} rank={bRank} onRank={view.chooseRank} />
          <HistorySide
            view={view}
            name="B"
            histories={both ? bHistories : null}
            history={bId}
            facts={bFacts}
            device={bDevice}
            moment={params.b.moment}
            set={(to, how) =>
              // A stays what it is, also where nobody had chosen it.
              change(
                { b: { ...params.b, ...to }, a: { ...params.a, history: aId } },
                how,
              )
            }
          />
        </SideFrame>
        {sameRun && both && (
          <ChartButton
            label="Exchange A and B"
            icon="swap"
            onClick={() =>
              change(
                {
                  a: {
                    ...params.b,
                    history: bId,
                    device: bDevice?.device ?? null,
                  },
                  b: {
                    ...params.a,
                    history: aId,
                    device: aDevice?.device ?? null,
                    moment: aMoment,
                  },
                },
                "push",
              )
            }
          />
        )}
      </div>
      <Waiting error={error} hasContent={figures !== null || bHistories !== null} />
      <Way of={a} name="A" byteUnit={byteUnit} />
      {!same && <Way of={b} name="B" byteUnit={byteUnit} />}
      <Waiting
        error={live.error}
        hasContent={moments !== null}
        note="MemBoard retries automatically."
      />
      {waits && error === null && live.error === null && <Skeleton heightPx={520} />}
      {(figures !== null || moments !== null) && (
        <Summary
          view={view}
          figures={figures}
          moments={moments}
          sameRun={sameRun}
          stale={numbers.stale}
        />
      )}
      {moments !== null && aDevice !== null && bDevice !== null && (
        <Moments {...part} answer={moments} a={aDevice} b={bDevice} />
      )}
      {!asked && none && <Alone view={view} histories={bHistories} />}
    </>
  );
}

function rankNamed(word: string): number | null {
  return /^\d+$/.test(word) ? Number(word) : null;
}

/** One sentence, the numbers beside each other, and the way from A to B. */
function Summary(props: {
  readonly view: PartProps["view"];
  readonly figures: CompareRunsResponse | null;
  readonly moments: CompareResponse | null;
  readonly sameRun: boolean;
  readonly stale: boolean;
}) {
  const { view, figures, moments, sameRun } = props;
  const { theme, byteUnit } = view;
  const groups = groupsOf(figures, moments, theme);
  const parts = partsOf(figures, moments).filter(
    ({ a, b }) => a.every(Number.isFinite) && b.every(Number.isFinite),
  );
  const sentence = figures?.sentence ?? moments?.sentence ?? "";
  return (
    <>
      <p class="compare-sentence" role="status">
        <strong>{sentence}</strong>
        {moments !== null && figures === null && (
          <span class="quiet">
            {" "}
            A: {moments.a.words} · B: {moments.b.words}
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
          <ExportMenu
            subject="the comparison"
            source={{
              origin: originOf(view.run),
              name: "comparison",
              table: () => differenceTable(groups),
              about: () => ({
                a: figures?.a.run.name ?? moments?.a.run.name ?? null,
                b: figures?.b.run.name ?? moments?.b.run.name ?? null,
                sentence,
              }),
            }}
            shell={view}
          />
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

/** Two moments line by line: timelines, flame graph, table. */
function Moments(props: DifferenceProps) {
  return (
    <>
      <Overlay {...props} />
      <ChangeFlame {...props} />
      <MomentRows {...props} />
    </>
  );
}

/** There is nothing to compare with yet. */
function Alone(props: {
  readonly view: PartProps["view"];
  readonly histories: Parameters<typeof NoHistory>[0]["histories"] | null;
}) {
  const { view, histories } = props;
  if (view.run.madeOf !== "recording") {
    return histories === null ? null : (
      <NoHistory
        histories={histories}
        rank={view.ranks.rank}
        showAllRanks={() => view.chooseRank(null)}
      />
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
function Way(props: {
  readonly of: FollowedHistory;
  readonly name: string;
  readonly byteUnit: PartProps["view"]["byteUnit"];
}) {
  const { answer, error, again } = props.of;
  if (answer === null) {
    return error === null ? null : (
      <Failure failure={error} note={`Side ${props.name}.`} />
    );
  }
  if (answer.state === "failed") return <OpeningFailed answer={answer} again={again} />;
  if (answer.state === "ready") return null;
  return <Opening answer={answer} byteUnit={props.byteUnit} />;
}
