import { useMemo, useState } from "preact/hooks";
import { worthSaying } from "../../api/client";
import type { ProfileResponse } from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import type { Live } from "../../api/live/watch";
import { counted } from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import type { XRange } from "../../widgets/plot/range";
import { Facts } from "../../widgets/facts/facts";
import { Failure } from "../../widgets/state/state";
import { Choice, type Option } from "../shared/controls/choices";
import { optional, readState, whole } from "../shared/page_state";
import type { ViewProps } from "../shared/view_props";
import { AnswerTable } from "../shared/table/answer_table";
import { StepStack } from "../shared/series/step_stack";
import { TraceChoice, TraceState } from "../time/profiled/trace_choice";

const STEPS_PX = 190;

const WORDS = { source: optional("source"), step: whole("step") };

export function useProfile(view: ViewProps): Live<ProfileResponse> {
  const { run, ranks, params } = view;
  const query = { run: run.id, rank: ranks.rank, ...readState(WORDS, params) };
  return useLive(view.client, "profile", query, view.pollMs);
}

export function ProfilePanel(props: {
  readonly view: ViewProps;
  readonly live: Live<ProfileResponse>;
}) {
  const { view } = props;
  const { data, error } = props.live;
  if (data === null) {
    return error !== null && worthSaying(error, true) ? (
      <Failure failure={error} />
    ) : null;
  }
  if (data.choice.numTraces === 0) return null;
  return (
    <section class="panel profile" aria-labelledby="profile-title">
      <header class="panel-head">
        <h2 id="profile-title">Where the time of profiled steps went</h2>
        <TraceChoice
          choice={data.choice}
          onChoose={(chosen) => view.setParams({ source: chosen }, "push")}
        />
        <button
          type="button"
          class="button"
          onClick={() => view.showPage("trace", { source: null })}
        >
          Show the trace
        </button>
      </header>
      <TraceState choice={data.choice} view={view} />
      {data.parts.length > 0 && <Profile data={data} view={view} />}
    </section>
  );
}

interface ProfileProps {
  readonly data: ProfileResponse;
  readonly view: ViewProps;
}

interface StepsProps extends ProfileProps {
  /** null: the mean of all. */
  readonly chosen: number | null;
  readonly choose: (step: string | null) => void;
}

function Profile({ data, view }: ProfileProps) {
  const steps = data.step.length;
  const mean = formatSeconds(data.meanMs / 1e3);
  const props: StepsProps = {
    data,
    view,
    chosen: chosenStep(data, readState(WORDS, view.params).step),
    choose: (step) => view.setParams({ step, w0: null, w1: null }, "push"),
  };
  return (
    <>
      <p>
        {data.areMarked
          ? `${counted(steps, "profiled step")}, mean ${mean}.`
          : `The trace marks no steps: all of it, ${mean}, counts as one.`}{" "}
        {steps > 1 && <StepChoice {...props} />}
      </p>
      <div class="columns">
        {data.roles !== null && (
          <AnswerTable view={view} table={data.roles} word="rolesort" />
        )}
        {steps > 1 && <Steps {...props} />}
      </div>
      {data.devices !== null && (
        <AnswerTable view={view} table={data.devices} word="devicesort" />
      )}
      <details>
        <summary>About this trace</summary>
        <Facts
          label="About this trace"
          rows={data.facts.map(({ name, value }) => [name.replaceAll("_", " "), value])}
        />
      </details>
    </>
  );
}

/** The step in the URL; null: the mean of all. */
export function chosenStep(
  { step }: Pick<ProfileResponse, "step">,
  named: number | null,
): number | null {
  return named !== null && step.length > 1 && step.includes(named) ? named : null;
}

function StepChoice({ data, chosen, choose }: StepsProps) {
  const steps = Array.from(data.step, (step, index): Option => {
    const took = formatSeconds((data.durationMs[index] ?? 0) / 1e3);
    return [step, `step ${step}: ${took}`];
  });
  return (
    <Choice
      label="Step"
      value={chosen?.toString() ?? ""}
      onChange={(value) => choose(value || null)}
      of={[["", `mean of all ${steps.length}`], ...steps]}
    />
  );
}

function Steps({ data, chosen, choose, view }: StepsProps) {
  const [range, setRange] = useState<XRange | null>(null);
  const answer = useMemo(() => stackedSteps(data), [data]);
  const { edges } = answer;
  return (
    <StepStack
      view={view}
      answer={answer}
      range={range}
      label="Time of the profiled steps by role"
      extent={{ low: edges[0] ?? 0, high: edges.at(-1) ?? 1 }}
      onRange={setRange}
      pinned={chosen}
      pin={(step) => choose(step === chosen ? null : String(step))}
      plotPx={STEPS_PX}
      legend={false}
      about={() => ({ run: view.run.name, source: data.choice.source })}
    />
  );
}

function stackedSteps({ step, durationMs, parts, choice }: ProfileResponse) {
  const shownStep = Float64Array.from(step);
  const of = choice.traces.find(({ id }) => id === choice.source);
  return {
    shownStep,
    firstStep: shownStep,
    stepsPerColumn: 1,
    exact: true,
    profilerSteps: [],
    x: "step" as const,
    columnRank: step.map(() => of?.rank ?? -1),
    edges: Float64Array.of(
      ...shownStep.map((number) => number - 0.5),
      (shownStep.at(-1) ?? 0) + 0.5,
    ),
    seconds: durationMs.map((ms) => ms / 1e3),
    parts: parts.map(({ colour: name, label, help, ms }) => ({
      name,
      label,
      help,
      seconds: ms.map((milliseconds) => milliseconds / 1e3),
    })),
  };
}
