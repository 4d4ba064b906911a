/** Where the time of profiled steps went: by role, by step, by device. */

import type { ProfileResponse } from "../../api/types.gen";
import { worthSaying } from "../../api/client";
import type { Live } from "../../api/watch";
import { formatBytes, formatBytesExact } from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import { durationCell } from "../../widgets/row_table/columns";
import { Failure } from "../../widgets/state/state";
import { ROLE_HELP, ROLE_WORDS, roleColour } from "../time/profiled/roles";
import { TraceChoice, TraceState, useProfiled } from "../time/profiled/trace_choice";
import type { ViewProps } from "../shared/view_props";
import { Choice } from "../shared/controls/choices";
import { chosenStep, partTimes, percent, stepBars, stepNumber } from "./profile_parts";
import "./profile.css";

const STEPS_PX = 224;

export function useProfile(view: ViewProps): Live<ProfileResponse> {
  const { run, ranks, params } = view;
  const source = params.get("source") ?? null;
  const step = stepNumber(params.get("profiled") ?? null);
  const query = { run: run.id, source, rank: ranks.rank, step };
  return useProfiled(view.client, "profile", query, view.pollMs);
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
        <div class="profile-choice">
          <TraceChoice
            choice={data.choice}
            onChoose={(chosen) => view.setParams({ source: chosen }, "push")}
          />
        </div>
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

function Profile(props: { readonly data: ProfileResponse; readonly view: ViewProps }) {
  const { data, view } = props;
  const steps = data.durationMs.length;
  const mean = data.durationMs.reduce((sum, one) => sum + one, 0) / Math.max(steps, 1);
  const chosen = chosenStep(data, view.params.get("profiled") ?? null);
  const choose = (index: number | null): void => {
    const step = index === null ? null : String(data.step[index] ?? 0);
    view.setParams({ profiled: step }, "push");
  };
  return (
    <>
      <p class="profile-summary">
        {data.areMarked
          ? `${steps} profiled step${steps === 1 ? "" : "s"}, ${formatSeconds(mean / 1e3)} each in the mean.`
          : `The trace marks no steps: all of it, ${formatSeconds(mean / 1e3)}, counts as one.`}
      </p>
      {steps > 1 && <StepChoice data={data} chosen={chosen} choose={choose} />}
      <div class="profile-times">
        <Roles data={data} chosen={chosen} view={view} />
        {steps > 1 && <Steps data={data} chosen={chosen} choose={choose} view={view} />}
      </div>
      {data.devices.length > 0 && <Devices data={data} view={view} />}
      <details class="profile-facts">
        <summary>About this trace</summary>
        <dl>
          {data.facts.map((one) => (
            <div key={one.name}>
              <dt>{one.name.replaceAll("_", " ")}</dt>
              <dd>{one.value}</dd>
            </div>
          ))}
        </dl>
      </details>
    </>
  );
}

interface ChosenStep {
  readonly data: ProfileResponse;
  /** The place of the step that is shown; null: the mean of all. */
  readonly chosen: number | null;
}

interface StepChooser extends ChosenStep {
  readonly choose: (index: number | null) => void;
}

function StepChoice({ data, chosen, choose }: StepChooser) {
  return (
    <div>
      <Choice
        label="Step"
        value={chosen?.toString() ?? ""}
        onChange={(value) => choose(value === "" ? null : Number(value))}
      >
        <option value="">mean of all {data.step.length}</option>
        {Array.from(data.step, (step, index) => (
          <option key={index} value={index}>
            step {step}: {formatSeconds((data.durationMs[index] ?? 0) / 1e3)}
          </option>
        ))}
      </Choice>
    </div>
  );
}

function Roles({
  data,
  chosen,
  view,
}: ChosenStep & {
  readonly view: ViewProps;
}) {
  return (
    <table class="data-table profile-roles">
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th
            scope="col"
            class="number"
            title={`${chosen === null ? "Mean over the profiled steps" : "Of the chosen step"}. Each moment counts once, for the first role of this list that is under way: so they add up to the step.`}
          >
            {chosen === null ? "per step" : `step ${data.step[chosen] ?? 0}`}
          </th>
          <th
            scope="col"
            class="number"
            title={
              chosen === null
                ? "Per step ÷ the mean length of the steps"
                : "Of the chosen step’s length"
            }
          >
            share
          </th>
          <th scope="col" />
        </tr>
      </thead>
      <tbody>
        {partTimes(data, chosen).map((part) => (
          <tr key={part.role}>
            <th scope="row" title={ROLE_HELP[part.role]}>
              <i
                class="trace-swatch"
                style={{ background: roleColour(view.theme, part.role) }}
              />
              {ROLE_WORDS[part.role]}
            </th>
            <td class="number" title={durationCell(part.ms).title}>
              {formatSeconds(part.ms / 1e3)}
            </td>
            <Share of={part.share} />
            <td class="profile-bar">
              <i
                style={{
                  width: `${part.share * 100}%`,
                  background: roleColour(view.theme, part.role),
                }}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A share; every digit where it is pointed at, and what a dash means. */
function Share({ of }: { readonly of: number | null }) {
  return (
    <td
      class="number"
      title={of === null ? "The trace does not say it" : `${100 * of} %`}
    >
      {percent(of)}
    </td>
  );
}

/** Bars that are clicked, as the list of steps is for the keyboard. */
function Steps({
  data,
  chosen,
  choose,
  view,
}: StepChooser & {
  readonly view: ViewProps;
}) {
  const bars = stepBars(data);
  const width = 100 / bars.length;
  const last = bars.at(-1);
  return (
    <figure class="profile-steps">
      <svg
        viewBox={`0 0 100 ${STEPS_PX}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Time by role of ${bars.length} profiled steps`}
      >
        {bars.map((one, place) => (
          <g
            key={one.index}
            class={chosen === null || chosen === one.index ? "" : "is-other"}
            onClick={() => choose(chosen === one.index ? null : one.index)}
          >
            <title>{stepTitle(data, one.index)}</title>
            <rect
              class="profile-step-area"
              x={place * width}
              width={width}
              y={0}
              height={STEPS_PX}
            />
            {one.bars.map((bar) => (
              <rect
                key={bar.role}
                x={place * width + width * 0.08}
                width={width * 0.84}
                y={STEPS_PX * (1 - bar.to)}
                height={STEPS_PX * (bar.to - bar.from)}
                fill={roleColour(view.theme, bar.role)}
              />
            ))}
          </g>
        ))}
      </svg>
      <figcaption class="quiet">
        <span>step {bars[0]?.step}</span>
        <span>{last !== undefined && `step ${last.step}`}</span>
      </figcaption>
    </figure>
  );
}

function stepTitle(data: ProfileResponse, index: number): string {
  const lines = data.parts.map(
    (part) => `${ROLE_WORDS[part.role]}: ${formatSeconds((part.ms[index] ?? 0) / 1e3)}`,
  );
  const took = formatSeconds((data.durationMs[index] ?? 0) / 1e3);
  return [`Step ${data.step[index] ?? 0}: ${took}`, ...lines].join("\n");
}

const USE_HELP = {
  memory: "All of the device’s memory, as the profiler wrote it; not what was used.",
  kernels:
    "Kernels that ran on it while the profiler did, those of collectives included; of one step those that began in it.",
  utilization:
    "Time in which at least one kernel ran ÷ time from the first profiled step’s start to the last one’s end, or the length of the chosen step. A kernel of one thread counts as much as one that fills the device: 100 % may be a device that is nearly idle.",
  smEfficiency:
    "Mean over the same time of min(1, blocks per SM of the kernels that run): 64 blocks on 80 SMs are 0.8. A block of one thread counts as much as a full one.",
  occupancy:
    "Est. achieved occupancy, mean of the kernels weighted by their time: active warps of an SM ÷ those it could have, reckoned from the launch and not measured. 15 to 30 % may be as good as it gets.",
  tensorCores:
    "Time of kernels that use tensor cores ÷ time of all kernels; of one step, of what lies in it. Judged by names alone (Volta to Blackwell): a kernel of another name counts as not using them.",
} as const;

function Devices(props: { readonly data: ProfileResponse; readonly view: ViewProps }) {
  const { devices, devicesStep } = props.data;
  return (
    <table class="data-table profile-devices">
      <thead>
        <tr>
          <th
            scope="col"
            title={
              devicesStep === null
                ? "From the first profiled step’s start to the last one’s end"
                : "In the chosen step alone"
            }
          >
            Device{devicesStep !== null && `, step ${devicesStep}`}
          </th>
          <th scope="col" class="number" title={USE_HELP.memory}>
            memory
          </th>
          <th scope="col" class="number" title={USE_HELP.kernels}>
            kernels
          </th>
          <th scope="col" class="number" title={USE_HELP.utilization}>
            utilization
          </th>
          <th scope="col" class="number" title={USE_HELP.smEfficiency}>
            est. SM efficiency
          </th>
          <th scope="col" class="number" title={USE_HELP.occupancy}>
            est. occupancy
          </th>
          <th scope="col" class="number" title={USE_HELP.tensorCores}>
            tensor cores
          </th>
        </tr>
      </thead>
      <tbody>
        {devices.map((one) => (
          <tr key={one.device}>
            <th scope="row">
              GPU {one.device}
              {one.name !== null && ` · ${one.name}`}
              {one.capability !== null && (
                <span class="quiet"> · capability {one.capability}</span>
              )}
            </th>
            <td class="number" title={formatBytesExact(one.totalBytes)}>
              {formatBytes(one.totalBytes, props.view.byteUnit)}
            </td>
            <td class="number">{one.numKernels.toLocaleString("en")}</td>
            <Share of={one.utilization} />
            <Share of={one.smEfficiency} />
            <Share of={one.occupancy} />
            <Share of={one.tensorCoreShare} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}
