import { useCallback, useMemo, useState } from "preact/hooks";
import { worthSaying } from "../../api/client";
import type { ProfileResponse } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { Live } from "../../api/watch";
import { formatSeconds } from "../../base/durations";
import { tokens } from "../../base/tokens";
import { X_AXES } from "../../model/lines/axis";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { partColour } from "../../render/palette";
import { xToPx } from "../../render/viewport";
import type { Pen } from "../../widgets/export/pen";
import type { XRange } from "../../widgets/plot/range";
import type { Seen } from "../../widgets/plot/reader";
import { PlainTable } from "../../widgets/row_table/plain_table";
import { Stack, type StackData } from "../../widgets/stack/stack";
import { Failure } from "../../widgets/state/state";
import { Choice } from "../shared/controls/choices";
import { optional, readState, whole } from "../shared/page_state";
import { lookOf, type ViewProps } from "../shared/view_props";
import { AnswerTable } from "../time/profiled/answer_table";
import { TraceChoice, TraceState } from "../time/profiled/trace_choice";

const STEPS_PX = 190;
const LOOK = { edgedPx: 5, linedPx: 3, apartPx: 6 };

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
      <TraceState choice={data.choice} />
      {data.parts.length > 0 && <Profile data={data} view={view} />}
    </section>
  );
}

interface ProfileProps {
  readonly data: ProfileResponse;
  readonly view: ViewProps;
}

interface StepsProps extends ProfileProps {
  /** Index of the shown step; null: the mean of all. */
  readonly chosen: number | null;
  readonly choose: (index: number | null) => void;
}

function Profile({ data, view }: ProfileProps) {
  const steps = data.durationMs.length;
  const mean = formatSeconds(data.meanMs / 1e3);
  const props: StepsProps = {
    ...{ data, view },
    chosen: chosenStep(data, readState(WORDS, view.params).step),
    choose: (index) => {
      const step = index === null ? null : String(data.step[index] ?? 0);
      view.setParams({ step, w0: null, w1: null }, "push");
    },
  };
  return (
    <>
      <p>
        {data.areMarked
          ? `${steps} profiled step${steps === 1 ? "" : "s"}, mean ${mean}.`
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
        <PlainTable
          label="About this trace"
          columns={[
            { title: "", cell: ({ name }) => name.replaceAll("_", " ") },
            { title: "", cell: ({ value }) => value },
          ]}
          rows={data.facts}
        />
      </details>
    </>
  );
}

/** Index of the step in the URL; null: the mean of all. */
export function chosenStep(
  { step }: Pick<ProfileResponse, "step">,
  named: number | null,
): number | null {
  const found = named === null || step.length < 2 ? -1 : step.indexOf(named);
  return found < 0 ? null : found;
}

function StepChoice({ data, chosen, choose }: StepsProps) {
  const steps = Array.from(data.step, (step, index): readonly [string, string] => {
    const took = formatSeconds((data.durationMs[index] ?? 0) / 1e3);
    return [index.toString(), `step ${step}: ${took}`];
  });
  return (
    <Choice
      label="Step"
      value={chosen?.toString() ?? ""}
      onChange={(value) => choose(value === "" ? null : Number(value))}
      of={[["", `mean of all ${data.step.length}`], ...steps]}
    />
  );
}

function Steps({ data, chosen, choose, view }: StepsProps) {
  const { theme, run } = view;
  const [range, setRange] = useState<XRange | null>(null);
  const stack = useMemo<StackData>(() => {
    const at = Float64Array.from(data.step);
    return {
      at,
      edges: Float64Array.of(...at.map((step) => step - 0.5), (at.at(-1) ?? 0) + 0.5),
      totals: data.durationMs.map((ms) => ms / 1e3),
      layers: data.parts.map(({ role, label, colour, ms }) => ({
        ...{ name: role, label, colour: partColour(theme, colour) },
        values: ms.map((one) => one / 1e3),
      })),
    };
  }, [data, theme]);
  const { at, edges, totals } = stack;
  const over = useCallback(
    (pen: Pen, { view: shown, size, left, top }: Seen): void => {
      if (chosen === null) return;
      const [from = NaN, to = NaN] = [chosen, chosen + 1].map(
        (edge) => left + xToPx(shown, size.widthPx, edges[edge] ?? NaN),
      );
      pen.strokeStyle = tokens(theme).text;
      pen.lineWidth = 1.5;
      pen.strokeRect(from, top, to - from, size.heightPx);
    },
    [chosen, edges, theme],
  );
  return (
    <Stack
      kind="profile-steps"
      label="Time of the profiled steps by role"
      subject="the profiled steps"
      {...lookOf(view)}
      {...{ data: stack, range, over, look: LOOK, unit: "seconds" }}
      axis={X_AXES.step}
      total="Step"
      exact={(value, total) => formatQuantity((100 * value) / total, "percent")}
      extent={{ low: edges[0] ?? 0, high: edges[at.length] ?? 1 }}
      onRange={setRange}
      plotPx={STEPS_PX}
      legend={false}
      words={(_x, _at, column) => ({
        title: `Step ${at[column] ?? "–"}`,
        notes: [formatExact(totals[column] ?? NaN, "seconds")],
      })}
      pick={(x) => {
        const index = at.indexOf(x);
        choose(index === chosen ? null : index);
      }}
      about={() => ({ run: run.name, source: data.choice.source })}
      help="Left and right read steps, Enter chooses the step, P goes to the longest, W and S zoom, F shows everything."
    />
  );
}
