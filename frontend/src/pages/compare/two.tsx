import type { ComponentChildren } from "preact";
import type {
  CompareResponse,
  CompareRunsResponse,
  RunSummary,
} from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import { Blaming } from "../../widgets/finding/finding";
import { IconButton } from "../../widgets/icon/icon";
import { Nothing, Skeleton, Waiting } from "../../widgets/state/state";
import { NoHistory, Opening, OpeningFailed } from "../memory/history/frame";
import { useCulprits } from "../memory/history/use_history";
import { AnswerTable } from "../shared/table/answer_table";
import { ChangeFlame } from "./charts/flame_part";
import { Overlay } from "./charts/overlay_part";
import { partsOf, Waterfall } from "./charts/waterfall";
import { sidesOf } from "./difference_rows";
import type { PartProps, SideState } from "./params";
import { about, PartRows } from "./rows";
import { HistorySide, RankChoice, SideFrame, stateOf, type Side } from "./sides";
import { useOtherRun } from "./runs/other_run";
import { ChooseRun } from "./runs/run_table";
import { rankOfA, type RankOfRun } from "./defaults";
import {
  useHistoriesOfA,
  useMomentComparison,
  useRunComparison,
  useSides,
  type Sides,
} from "./use_two";

export function TwoSides(part: PartProps) {
  const { view, params } = part;
  const { client, run, pollMs } = view;
  const b: RankOfRun = { run: run.id, rank: view.ranks.rank };
  const listOfB = useLive(client, "histories", b, pollMs);
  const historiesOfB = listOfB.data;
  // A recording has numbers of its own; a file is first compared with its neighbours.
  const hasOthers =
    run.madeOf !== "recording" && (historiesOfB?.histories.length ?? 2) > 1;
  const { run: runA, choice, isOpen } = useOtherRun(part, hasOthers);
  const rankA = rankOfA(runA?.id ?? "", params.aRank, b);
  const a = runA === null ? null : rankA;
  const listOfA = useHistoriesOfA(view, a, b, historiesOfB);
  const runs = useRunComparison(view, runA, a, b);
  const sides = useSides(part, runA, listOfA.histories, historiesOfB);
  const moments = useMomentComparison(part, runA, sides);
  const culprits = useCulprits(view, null);

  const error = runs.error ?? listOfB.error ?? listOfA.error;
  const hasAnswer = runs.answer !== null || moments.answer !== null;
  const waits =
    (runs.isRequested && runs.answer === null) || (sides.hasBoth && !hasAnswer);
  const lacksHistories =
    listOfA.histories?.histories.length === 0 || historiesOfB?.histories.length === 0;
  return (
    <>
      <SideChoices
        part={part}
        runA={runA}
        rankA={rankA.rank}
        choice={choice}
        sides={sides}
      />
      {isOpen && <ChooseRun {...part} />}
      <Waiting
        error={error}
        hasContent={runs.answer !== null || historiesOfB !== null}
      />
      <OpeningState side={sides.a} view={view} />
      {!sides.areSame && <OpeningState side={sides.b} view={view} />}
      <Waiting
        error={moments.error}
        hasContent={moments.answer !== null}
        note="MemBoard retries automatically."
      />
      {waits && error === null && moments.error === null && <Skeleton heightPx={520} />}
      {hasAnswer && (
        <Difference
          {...part}
          runs={runs.answer}
          moments={moments.answer}
          culprits={culprits}
          stale={runs.stale}
        />
      )}
      <MomentCharts part={part} answer={moments.answer} sides={sides} />
      {!isOpen && !runs.isRequested && lacksHistories && (
        <NoOther view={view} histories={historiesOfB} />
      )}
    </>
  );
}

function SideChoices(props: {
  readonly part: PartProps;
  readonly runA: RunSummary | null;
  readonly rankA: number | null;
  /** Of A's run. */
  readonly choice: ComponentChildren;
  readonly sides: Sides;
}) {
  const { part, runA, rankA, choice, sides } = props;
  const { view, params, change } = part;
  const { run } = view;
  const history = sides.a.history;
  const setA = (to: Partial<SideState>, how?: "push"): void =>
    change({ a: { ...params.a, history, ...to } }, how);
  // Writes A too: its default depends on B.
  const setB = (to: Partial<SideState>, how?: "push"): void =>
    change({ b: { ...params.b, ...to }, a: { ...params.a, history } }, how);
  const exchange = (): void =>
    change({ a: stateOf(sides.b, params.b), b: stateOf(sides.a, params.a) }, "push");
  return (
    <div class="row">
      <SideFrame name="A" run={choice}>
        <RankChoice
          run={runA ?? run}
          rank={rankA}
          onRank={(rank) => change({ aRank: rank?.toString() ?? "all" }, "push")}
        />
        <HistorySide view={view} side={sides.a} set={setA} />
      </SideFrame>
      <SideFrame name="B" run={<b>{run.name}</b>}>
        <RankChoice run={run} rank={view.ranks.rank} onRank={view.chooseRank} />
        <HistorySide view={view} side={sides.b} set={setB} />
      </SideFrame>
      {runA?.id === run.id && sides.hasBoth && (
        <IconButton label="Exchange A and B" icon="swap" onClick={exchange} />
      )}
    </div>
  );
}

function MomentCharts(props: {
  readonly part: PartProps;
  readonly answer: CompareResponse | null;
  readonly sides: Sides;
}) {
  const { part, answer, sides } = props;
  const { device: a } = sides.a;
  const { device: b } = sides.b;
  if (answer === null || a === null || b === null) return null;
  return (
    <>
      <Overlay {...part} answer={answer} a={a} b={b} />
      <ChangeFlame {...part} answer={answer} a={a} b={b} />
    </>
  );
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
  // Beside the waterfall stand the numbers of its own moments.
  const ofMoments = moments?.figures ?? runs?.momentFigures;
  const figures = [ofMoments, runs?.figures].filter(
    (table) => table !== undefined && table.numRows > 0,
  );
  const sentence = runs?.sentence ?? moments?.sentence ?? "";
  const line =
    [...culprits].find((culprit) => moments?.sentence.includes(culprit)) ?? "";
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
          <Waterfall
            view={view}
            parts={parts}
            of={of}
            totals={ofMoments}
            culprits={culprits}
          />
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

function NoOther(props: {
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

function OpeningState(props: {
  readonly side: Side;
  readonly view: PartProps["view"];
}) {
  const { name, opened } = props.side;
  const { answer, error, again } = opened;
  if (answer === null) {
    return <Waiting error={error} hasContent={false} note={`Side ${name}.`} />;
  }
  if (answer.state === "failed") return <OpeningFailed answer={answer} again={again} />;
  if (answer.state === "ready") return null;
  return <Opening answer={answer} byteUnit={props.view.byteUnit} />;
}
