import { useCallback, useMemo, useState } from "preact/hooks";
import { worthSaying } from "../../api/client";
import type { ProfileResponse } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { Live } from "../../api/watch";
import { formatSeconds } from "../../base/durations";
import { tokens } from "../../base/tokens";
import { X_AXES } from "../../model/lines/axis";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { xToPx } from "../../render/viewport";
import type { Pen } from "../../widgets/export/pen";
import type { XRange } from "../../widgets/plot/range";
import type { Seen } from "../../widgets/plot/reader";
import {
  barOf,
  durationCell,
  numberColumn,
  textColumn,
} from "../../widgets/row_table/columns";
import { PlainTable } from "../../widgets/row_table/plain_table";
import { SortedTable } from "../../widgets/row_table/sorted_table";
import { Stack, type StackData } from "../../widgets/stack/stack";
import { Failure } from "../../widgets/state/state";
import { Choice } from "../shared/controls/choices";
import { optional, readState, whole } from "../shared/page_state";
import { lookOf, type ViewProps } from "../shared/view_props";
import { AnswerTable } from "../time/profiled/answer_table";
import { meanStepMs, ROLE_HELP, ROLE_WORDS, roleColour } from "../time/profiled/roles";
import { TraceChoice, TraceState } from "../time/profiled/trace_choice";

const STEPS_PX = 190;
const ROLES_PX = 300;
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
  const mean = formatSeconds(meanStepMs(data) / 1e3);
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
        <Roles {...props} />
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

/** Of one step, or the mean of all. */
export function partTimes(
  { parts, durationMs }: Pick<ProfileResponse, "parts" | "durationMs">,
  chosen: number | null,
) {
  return parts.map(({ role, meanMs, share, ms }) => {
    if (chosen === null) return { role, ms: meanMs, share };
    const whole = durationMs[chosen] ?? 0;
    const own = ms[chosen] ?? 0;
    return { role, ms: own, share: whole > 0 ? own / whole : 0 };
  });
}

function Roles({ data, chosen, view: { theme } }: StepsProps) {
  const columns = useMemo(() => {
    const parts = partTimes(data, chosen);
    const isMean = chosen === null;
    const colours = parts.map(({ role }) => roleColour(theme, role));
    return [
      textColumn(
        ...(["role", "Time", "minmax(120px, 1fr)"] as const),
        parts.map(({ role }) => ROLE_WORDS[role]),
        undefined,
        (text, row) => ({
          ...{ text, swatch: colours[row] ?? "" },
          title: parts.map(({ role }) => ROLE_HELP[role])[row] ?? text,
        }),
      ),
      numberColumn(
        ...(["ms", isMean ? "per step" : `step ${data.step[chosen] ?? 0}`] as const),
        "96px",
        parts.map(({ ms }) => ms),
        durationCell,
        `${isMean ? "Mean over the profiled steps" : "Of the chosen step"}. Each moment counts once, for the first role that is under way, in the order kernels, copies, fills, communication, runtime calls, dataloader, host operators: so they add up to the step.`,
      ),
      numberColumn(
        ...(["share", "share", "minmax(96px, 1fr)"] as const),
        parts.map(({ share }) => share),
        (share, row) => ({
          ...{ text: percent(share), title: `${100 * share} %` },
          bar: barOf(share, 1, colours[row] ?? ""),
        }),
        isMean
          ? "Per step ÷ the mean length of the steps"
          : "Of the chosen step’s length",
      ),
    ];
  }, [data, chosen, theme]);
  return (
    <SortedTable
      label="Roles"
      columns={columns}
      numRows={data.parts.length}
      usual={{ key: "ms", descending: true }}
      empty="The trace has no time."
      heightPx={ROLES_PX}
    />
  );
}

export function percent(share: number): string {
  const value = share * 100;
  return `${value < 9.95 && value !== 0 ? value.toFixed(1) : value.toFixed(0)} %`;
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
      layers: data.parts.map(({ role, ms }) => ({
        ...{ name: role, label: ROLE_WORDS[role], colour: roleColour(theme, role) },
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
