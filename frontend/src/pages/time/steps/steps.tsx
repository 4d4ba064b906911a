import { useMemo, useRef } from "preact/hooks";
import { useLive } from "../../../api/live/use_live";
import { commandsOf, useCommands } from "../../../base/commands";
import { Findings } from "../../../widgets/finding/finding";
import { useWidth } from "../../../widgets/plot/canvas";
import { Waiting } from "../../../widgets/state/state";
import { Switch } from "../../shared/controls/choices";
import { PhaseChoice, XSwitch } from "../../shared/controls/x_switch";
import { AbsentList } from "../../shared/panels/absent_list";
import { NotCollected } from "../../shared/panels/not_collected";
import { extentOf, SeriesBelow } from "../../shared/series/series_chart";
import { usePageState } from "../../shared/page_state";
import { useRange } from "../../shared/range/use_range";
import { useTwoAnswers } from "../../shared/range/use_two_answers";
import type { ViewProps } from "../../shared/view_props";
import { AnswerTable } from "../../shared/table/answer_table";
import { numbersOf } from "../../shared/table/columns";
import { PartsPanel } from "./parts_panel";
import { CHART_PX, STEPS } from "./params";
import { StepMap } from "./rank_map";
import { RateChart } from "./rates";
import { Stack, STACK_PX } from "../../shared/series/step_stack";
import { StepDrawer } from "./step_drawer";
import "../time.css";

const STRAGGLERS_PX = 280;

const SNIPPET = `with mb.record(logdir) as rec:
    rec.attach(model, optimizer)
    for batch in rec.loader(dataloader):
        train_step(batch)
        rec.step(samples=len(batch))`;

export function StepsView(props: ViewProps) {
  const { client, run, ranks, pollMs, commands } = props;
  const [params] = usePageState(props, STEPS);
  const box = useRef<HTMLDivElement>(null);
  const px = Math.round(useWidth(box));
  const range = useRange(props.params, (changes, how) => {
    // The range includes its axis, so that every view reads it alike.
    props.setParams({ x: params.x === "step" ? null : params.x, ...changes }, how);
  });
  const { shown, setRange } = range;
  const { x, phase, of } = params;
  const asked = { run: run.id, rank: ranks.rank, ranks: ranks.filter, phase };
  const subject = { ...asked, x, of };
  const data = useTwoAnswers(client, "steps", subject, range, px, pollMs);
  const answer = data.drawn ?? data.whole;
  const drawn = answer?.rank === null ? null : answer;
  // The slowest answer; nothing above waits for it.
  const late = useLive(client, "stragglers", drawn && asked, pollMs);
  const stragglers = late.data;
  const extent = useMemo(
    () => (answer === null ? { low: 0, high: 1 } : extentOf(answer)),
    [answer?.xLow, answer?.xHigh, answer?.x],
  );
  const pin = (step: number | null): void =>
    // Trace must open at the step, not at its previous window.
    props.setParams({ ...STEPS.step.write(step), w0: null, w1: null }, "push");
  const hasMap = ranks.rank === null && (answer?.numRanks ?? 0) > 1;

  const unpin = (): void => {
    if (params.step !== null) pin(null);
  };
  useCommands(commands, () =>
    commandsOf("steps", "Steps", [["unpin", "Close the pinned step", unpin, "Escape"]]),
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
                params={params}
                view={props}
                answer={drawn}
                data={stragglers}
              />
              <Findings {...props} findings={stragglers.findings} />
            </>
          )}
          <Stack
            view={props}
            answer={drawn}
            whole={data.whole}
            extent={extent}
            pin={pin}
            range={shown}
            onRange={setRange}
            pinned={params.step}
            bar={
              <div class="row on-hover">
                {drawn.of !== "rank" && (
                  <Switch view={props} of={STEPS.of} label="Steps of" />
                )}
                <XSwitch view={props} />
                <PhaseChoice view={props} phase={params.phase} phases={drawn.phases} />
              </div>
            }
          />
          <RateChart
            view={props}
            answer={drawn}
            params={params}
            extent={extent}
            setRange={setRange}
            range={shown}
          />
          {drawn.memorySeries !== null && (
            <SeriesBelow
              view={props}
              params={params}
              series={drawn.memorySeries}
              limit={null}
              range={{ ...range, extent, px }}
              heightPx={CHART_PX}
            />
          )}
          {stragglers !== null && hasMap && (
            <StepMap
              view={props}
              params={params}
              data={stragglers}
              shared={{ range: shown, setRange }}
              onPick={pin}
              px={px}
            />
          )}
          {stragglers?.ranks && hasMap && (
            <AnswerTable
              view={props}
              table={stragglers.ranks}
              word="late_sort"
              onSelect={(row) => {
                const rank =
                  stragglers.ranks && numbersOf(stragglers.ranks, "rank")[row];
                props.chooseRank(rank ?? null);
              }}
              about={{
                num_ranks: stragglers.numRanks,
                num_steps: stragglers.numSteps,
              }}
              heightPx={STRAGGLERS_PX}
            />
          )}
          <AbsentList
            absent={drawn.absent.map(({ label: source, reason, remedy }) => ({
              source,
              reason,
              remedy,
              note: "part of the step",
            }))}
          />
          {params.step !== null && (
            <StepDrawer view={props} phase={phase} step={params.step} close={unpin} />
          )}
        </>
      )}
    </div>
  );
}
