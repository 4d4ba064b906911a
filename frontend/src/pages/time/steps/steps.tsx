import { useMemo, useRef } from "preact/hooks";
import type { StepsResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { commandsOf, useCommands } from "../../../base/commands";
import { columnLabel } from "../../../model/words/column_label";
import { partLabel } from "../../../model/words/step_part";
import { Findings } from "../../../widgets/finding/finding";
import type { XRange } from "../../../widgets/plot/range";
import { useWidth } from "../../../widgets/plot/canvas";
import { Waiting } from "../../../widgets/state/state";
import { Choice, Options, Segmented } from "../../shared/controls/choices";
import { XSwitch } from "../../shared/controls/x_switch";
import { AbsentList } from "../../shared/panels/absent_list";
import { NotCollected } from "../../shared/panels/not_collected";
import { SeriesBelow } from "../../shared/series/series_chart";
import { useRange } from "../../shared/range/use_range";
import { useTwoAnswers } from "../../shared/range/use_two_answers";
import type { ViewProps } from "../../shared/view_props";
import { AnswerTable, columnOf } from "../profiled/answer_table";
import { PartsPanel } from "./parts_panel";
import { CHART_PX, HEAT_PARTS, readSteps, type StepsParams } from "./params";
import { StepMap } from "./rank_map";
import { RateChart } from "./rates";
import { Stack, STACK_PX } from "./stack_part";
import { StepDrawer } from "./step_drawer";
import "../time.css";

const STRAGGLERS_PX = 280;

const SNIPPET = `with collector.record(logdir) as rec:
    rec.attach(model, optimizer)
    for batch in rec.loader(dataloader):
        train_step(batch)
        rec.step(samples=len(batch))`;

const OF_WORDS = {
  worst: ["Slowest rank", "Of each step, the rank that took longest"],
  median: ["Median rank", "Of each step, the median rank"],
} as const;

export function StepsView(props: ViewProps) {
  const { client, run, ranks, pollMs, commands } = props;
  const params = readSteps(props.params);
  const box = useRef<HTMLDivElement>(null);
  const px = Math.round(useWidth(box));
  const { shown, settled, setRange } = useRange(props.params, (changes) => {
    // The range includes its axis, so that every view reads it alike.
    props.setParams({ x: params.x === "step" ? null : params.x, ...changes });
  });
  const subject = {
    run: run.id,
    rank: ranks.rank,
    ranks: ranks.filter,
    x: params.x,
    phase: params.phase,
    of: params.of,
  };
  const data = useTwoAnswers(client, "steps", subject, { shown, settled }, px, pollMs);
  const answer = data.drawn ?? data.whole;
  const drawn = answer?.rank === null ? null : answer;
  // The slowest answer; nothing above waits for it.
  const late = useLive(
    client,
    "stragglers",
    drawn === null
      ? null
      : { run: run.id, rank: ranks.rank, ranks: ranks.filter, phase: params.phase },
    pollMs,
  );
  const stragglers = late.data;
  const rankOf = (row: number): number | null =>
    (stragglers?.ranks && columnOf(stragglers.ranks, "rank")?.numbers[row]) ?? null;
  const extent = useMemo(
    () => (answer === null ? { low: 0, high: 1 } : extentOf(answer)),
    [answer?.xLow, answer?.xHigh, answer?.x],
  );
  const pin = (step: number | null): void =>
    // Trace must open at the step, not at its previous window.
    props.setParams({ step: step?.toString() ?? null, w0: null, w1: null }, "push");
  const hasMap = ranks.rank === null && (answer?.numRanks ?? 0) > 1;

  useCommands(commands, () =>
    commandsOf("steps", "Steps", [
      [
        "unpin",
        "Close the pinned step",
        () => {
          if (params.step !== null) pin(null);
        },
        "Escape",
      ],
    ]),
  );

  return (
    <div class="stacked" ref={box} aria-busy={data.stale}>
      <Waiting
        error={data.error}
        hasContent={answer !== null}
        blocksPx={[32, STACK_PX]}
      />
      {answer?.rank === null && (
        <NotCollected
          title="No steps were recorded in this run"
          absent={[]}
          snippet={SNIPPET}
          note="Each call of rec.step ends a step. Its parts are timed automatically."
        />
      )}
      {drawn !== null && (
        <>
          <Waiting error={late.error} hasContent />
          {stragglers !== null && (
            <>
              <PartsPanel
                view={props}
                answer={drawn}
                data={stragglers}
                params={params}
              />
              <Findings {...props} findings={stragglers.findings} />
            </>
          )}
          <Stack
            view={props}
            answer={drawn}
            whole={data.whole}
            stale={data.stale}
            extent={extent}
            range={shown}
            setRange={setRange}
            pinned={params.step}
            pin={pin}
            controls={
              <Controls answer={drawn} params={params} setParams={props.setParams} />
            }
          />
          <RateChart
            view={props}
            answer={drawn}
            params={params}
            extent={extent}
            range={shown}
            setRange={setRange}
          />
          {drawn.memorySeries !== null && (
            <SeriesBelow
              view={props}
              params={params}
              series={drawn.memorySeries}
              title={`${columnLabel(drawn.memorySeries)} of each step`}
              limit={null}
              range={{ extent, shown, settled, setRange, px }}
              heightPx={CHART_PX}
            />
          )}
          {hasMap && (
            <StepMap
              view={props}
              params={params}
              telling={HEAT_PARTS.find((one) => one === stragglers?.part) ?? "step"}
              range={shown}
              setRange={setRange}
              onPick={pin}
              px={px}
            />
          )}
          {stragglers?.ranks && hasMap && (
            <AnswerTable
              view={props}
              table={stragglers.ranks}
              word="late_sort"
              onSelect={(row) => props.chooseRank(rankOf(row))}
              about={{
                num_ranks: stragglers.numRanks,
                num_steps: stragglers.numSteps,
              }}
              heightPx={STRAGGLERS_PX}
            />
          )}
          <AbsentList
            absent={drawn.absent.map(({ name, reason, remedy }) => ({
              source: partLabel(name),
              reason,
              remedy,
              note: "part of the step",
            }))}
          />
          {params.step !== null && (
            <StepDrawer
              view={props}
              step={params.step}
              phase={params.phase}
              close={() => pin(null)}
            />
          )}
        </>
      )}
    </div>
  );
}

/** Half a step more per side, as in the heatmap's cells. */
function extentOf(answer: StepsResponse): XRange {
  const half = answer.x === "step" ? 0.5 : 0;
  return { low: answer.xLow - half, high: answer.xHigh + half };
}

function Controls(props: {
  readonly answer: StepsResponse;
  readonly params: StepsParams;
  readonly setParams: ViewProps["setParams"];
}) {
  const { answer, params, setParams } = props;
  const { phases } = answer;
  return (
    <div class="row on-hover">
      {answer.of !== "rank" && (
        <Segmented
          label="Steps of"
          options={["worst", "median"] as const}
          chosen={params.of}
          words={(option) => OF_WORDS[option]}
          onChoose={(of) => setParams({ of: of === "worst" ? null : of }, "push")}
        />
      )}
      <XSwitch
        x={params.x}
        setX={(x) => {
          // A range of steps means nothing in time.
          setParams({ x, x0: null, x1: null }, "push");
        }}
      />
      {phases.length > 1 && (
        <Choice
          label="Phase"
          value={params.phase === "" ? (phases[0] ?? "") : params.phase}
          onChange={(value) =>
            setParams({ phase: value === phases[0] ? null : value }, "push")
          }
        >
          <Options of={phases.map((phase) => [phase, phase])} />
        </Choice>
      )}
    </div>
  );
}
