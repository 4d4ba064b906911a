import type { CompareResponse, CompareRunsResponse } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { Blaming } from "../../widgets/finding/finding";
import { IconButton } from "../../widgets/icon/icon";
import { Nothing, Skeleton, Waiting } from "../../widgets/state/state";
import { NoHistory, Opening, OpeningFailed } from "../memory/history/frame";
import {
  chosenDevice,
  chosenHistory,
  useCulprits,
  useHistory,
} from "../memory/history/use_history";
import { AnswerTable } from "../shared/table/answer_table";
import { ChangeFlame } from "./charts/flame_part";
import { Overlay } from "./charts/overlay_part";
import { partsOf, Waterfall } from "./charts/waterfall";
import { sidesOf } from "./difference_rows";
import type { PartProps, SideState } from "./params";
import { about, PartRows } from "./rows";
import {
  historyOfA,
  HistorySide,
  lastMoment,
  RankChoice,
  SideFrame,
  stateOf,
  useOtherRun,
  type Side,
} from "./sides";

export function Two(part: PartProps) {
  const { view, params, change } = part;
  const { client, run, pollMs } = view;
  const bRank = view.ranks.rank;
  const ofB = { run: run.id, rank: bRank };
  const bList = useLive(client, "histories", ofB, pollMs);
  // A recording has numbers of its own; a file is first compared with its neighbours.
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
  const bDevice = chosenDevice(b.answer?.facts ?? null, params.b.device);
  // By default A is of B's device.
  const aDevice = chosenDevice(
    a.answer?.facts ?? null,
    params.a.device ?? bDevice?.device ?? null,
  );
  const same = aId === bId && sameRun && aDevice?.device === bDevice?.device;
  const untold =
    params.a.moment === null && params.a.history === "" && params.b.moment === null;
  const aMoment =
    same && untold && aDevice !== null ? lastMoment(aDevice) : params.a.moment;
  const live = useLive(
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
  const culprits = useCulprits(view, null);
  const runs = asked ? numbers.data : null;
  const moments = both ? live.data : null;
  const none = aHistories?.histories.length === 0 || bHistories?.histories.length === 0;
  const error = numbers.error ?? bList.error ?? aList.error;
  const waits =
    (asked && numbers.data === null) || (both && moments === null && runs === null);
  const sideA: Side = {
    name: "A",
    opened: a,
    device: aDevice,
    moment: aMoment,
    histories: both ? aHistories : null,
    history: aId,
  };
  const sideB: Side = {
    name: "B",
    opened: b,
    device: bDevice,
    moment: params.b.moment,
    histories: both ? bHistories : null,
    history: bId,
  };
  // Writes A too: its default depends on B.
  const setB = (to: Partial<SideState>, how?: "push"): void =>
    change({ b: { ...params.b, ...to }, a: { ...params.a, history: aId } }, how);
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
            side={sideA}
            set={(to, how) => change({ a: { ...params.a, history: aId, ...to } }, how)}
          />
        </SideFrame>
        <SideFrame name="B" run={<b>{run.name}</b>}>
          <RankChoice run={run} rank={bRank} onRank={view.chooseRank} />
          <HistorySide view={view} side={sideB} set={setB} />
        </SideFrame>
        {sameRun && both && (
          <IconButton
            label="Exchange A and B"
            icon="swap"
            onClick={() =>
              change(
                { a: stateOf(sideB, params.b), b: stateOf(sideA, params.a) },
                "push",
              )
            }
          />
        )}
      </div>
      {other.note}
      <Waiting error={error} hasContent={runs !== null || bHistories !== null} />
      <Way of={sideA} view={view} />
      {!same && <Way of={sideB} view={view} />}
      <Waiting
        error={live.error}
        hasContent={moments !== null}
        note="MemBoard retries automatically."
      />
      {waits && error === null && live.error === null && <Skeleton heightPx={520} />}
      {(runs !== null || moments !== null) && (
        <Difference
          {...part}
          runs={runs}
          moments={moments}
          culprits={culprits}
          stale={numbers.stale}
        />
      )}
      {moments !== null && aDevice !== null && bDevice !== null && (
        <>
          <Overlay {...part} answer={moments} a={aDevice} b={bDevice} />
          <ChangeFlame {...part} answer={moments} a={aDevice} b={bDevice} />
        </>
      )}
      {!asked && none && <Alone view={view} histories={bHistories} />}
    </>
  );
}

function rankNamed(word: string): number | null {
  return /^\d+$/.test(word) ? Number(word) : null;
}

function Difference(
  props: PartProps & {
    readonly runs: CompareRunsResponse | null;
    readonly moments: CompareResponse | null;
    readonly culprits: ReadonlySet<string>;
    readonly stale: boolean;
  },
) {
  const { view, runs, moments, culprits, stale, ...part } = props;
  const tables = partsOf(runs, moments);
  // A side without tracked steps knows nothing.
  const parts = tables.filter(
    ({ by, rows }) => by !== "size" && by !== "stack" && sidesOf(rows) !== null,
  );
  const figures = [runs?.figures, moments?.figures];
  const sentence = runs?.sentence ?? moments?.sentence ?? "";
  const line = [...culprits].find((one) => moments?.sentence.includes(one)) ?? "";
  const of = moments === null ? `at the peak of ${runs?.tablesOf ?? ""}` : "";
  const sides = {
    a: moments === null ? (runs?.a.name ?? null) : about(moments.a),
    b: moments === null ? (runs?.b.name ?? null) : about(moments.b),
  };
  return (
    <>
      <div class="compare-sentence" role="status">
        <strong>
          <Blaming text={sentence} line={line} />
        </strong>{" "}
        {runs !== null && moments !== null && (
          <Blaming text={moments.sentence} line={line} />
        )}{" "}
        {moments !== null && (
          <span class="quiet">
            A: {moments.a.words} · B: {moments.b.words}
          </span>
        )}
      </div>
      <div class={`compare-top${stale ? " stale" : ""}`}>
        {parts.length > 0 && (
          <Waterfall view={view} parts={parts} of={of} culprits={culprits} />
        )}
        <section class="compare-numbers" aria-label="The difference">
          {figures.map(
            (table) =>
              table !== undefined && (
                <AnswerTable
                  view={view}
                  table={table}
                  key={table.title}
                  word="figuresort"
                  about={{ ...sides, sentence }}
                  shell={view}
                />
              ),
          )}
        </section>
        {parts.length === 0 && (
          <p class="quiet">
            For categories and modules at the peak, record both runs with{" "}
            <code>modules=True</code>; for lines, on a GPU, with{" "}
            <code>history=True</code>.
          </p>
        )}
      </div>
      {tables.length > 0 && (
        <PartRows
          {...part}
          view={view}
          parts={{ ...moments, tables }}
          culprits={culprits}
          about={{ match: props.params.match, of, ...sides }}
        />
      )}
    </>
  );
}

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

function Way(props: { readonly of: Side; readonly view: PartProps["view"] }) {
  const { name, opened } = props.of;
  const { answer, error, again } = opened;
  if (answer === null) {
    return <Waiting error={error} hasContent={false} note={`Side ${name}.`} />;
  }
  if (answer.state === "failed") return <OpeningFailed answer={answer} again={again} />;
  if (answer.state === "ready") return null;
  return <Opening answer={answer} byteUnit={props.view.byteUnit} />;
}
