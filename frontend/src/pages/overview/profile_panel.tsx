import { worthSaying } from "../../api/client";
import type { ProfiledDevice, ProfileResponse } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { Live } from "../../api/watch";
import { formatBytes, formatBytesExact, formatInteger } from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import { durationCell } from "../../widgets/row_table/columns";
import { PlainTable, type PlainColumn } from "../../widgets/row_table/plain_table";
import { Failure } from "../../widgets/state/state";
import { Choice, Options } from "../shared/controls/choices";
import { optional, readState, whole } from "../shared/page_state";
import type { ViewProps } from "../shared/view_props";
import { meanStepMs, ROLE_HELP, ROLE_WORDS, roleColour } from "../time/profiled/roles";
import { TraceChoice, TraceState } from "../time/profiled/trace_choice";

const STEPS_PX = 224;
/** With more steps each bar is the longest of its neighbours. */
export const MOST_STEPS = 120;

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
      {data.devices.length > 0 && (
        <PlainTable
          label="Devices"
          columns={deviceColumns(data, view)}
          rows={data.devices}
        />
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
  return (
    <Choice
      label="Step"
      value={chosen?.toString() ?? ""}
      onChange={(value) => choose(value === "" ? null : Number(value))}
    >
      <Options
        of={[
          ["", `mean of all ${data.step.length}`],
          ...Array.from(data.step, (step, index): readonly [string, string] => {
            const took = formatSeconds((data.durationMs[index] ?? 0) / 1e3);
            return [index.toString(), `step ${step}: ${took}`];
          }),
        ]}
      />
    </Choice>
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

function Roles({ data, chosen, view }: StepsProps) {
  const isMean = chosen === null;
  type Part = ReturnType<typeof partTimes>[number];
  const columns: readonly PlainColumn<Part>[] = [
    {
      title: "Time",
      cell: ({ role }) => (
        <span title={ROLE_HELP[role]}>
          <i class="swatch" style={{ background: roleColour(view.theme, role) }} />
          {ROLE_WORDS[role]}
        </span>
      ),
    },
    {
      title: isMean ? "per step" : `step ${data.step[chosen] ?? 0}`,
      hint: `${isMean ? "Mean over the profiled steps" : "Of the chosen step"}. Each moment counts once, for the first role of this list that is under way: so they add up to the step.`,
      look: "num",
      cell: ({ ms }) => (
        <span title={durationCell(ms).title}>{formatSeconds(ms / 1e3)}</span>
      ),
    },
    {
      title: "share",
      hint: isMean
        ? "Per step ÷ the mean length of the steps"
        : "Of the chosen step’s length",
      look: "num",
      cell: ({ share }) => <Share of={share} />,
    },
    {
      title: "",
      cell: ({ role, share }) => (
        <i
          class="profile-bar"
          style={{
            width: `${share * 160}px`,
            background: roleColour(view.theme, role),
          }}
        />
      ),
    },
  ];
  return <PlainTable label="Roles" columns={columns} rows={partTimes(data, chosen)} />;
}

function Share({ of }: { readonly of: number | null }) {
  const title = of === null ? "Not in the trace" : `${100 * of} %`;
  return <span title={title}>{percent(of)}</span>;
}

export function percent(share: number | null): string {
  if (share === null || !Number.isFinite(share)) return "–";
  const value = share * 100;
  return `${value < 9.95 && value !== 0 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** Indices of drawn steps; of very many the longest of each group. */
export function shownSteps({
  durationMs,
}: Pick<ProfileResponse, "durationMs">): readonly number[] {
  const width = Math.max(1, Math.ceil(durationMs.length / MOST_STEPS));
  const groups = Array.from({ length: Math.ceil(durationMs.length / width) });
  return groups.map((_, group) => {
    const own = durationMs.subarray(group * width, (group + 1) * width);
    return group * width + own.indexOf(Math.max(...own));
  });
}

/** Bars take clicks; the list of steps serves the keyboard. */
function Steps({ data, chosen, choose, view }: StepsProps) {
  const shown = shownSteps(data);
  const width = 100 / shown.length;
  const longest = Math.max(...data.durationMs) || 1;
  return (
    <figure class="profile-steps">
      <svg
        viewBox={`0 0 100 ${STEPS_PX}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Time by role of ${shown.length} profiled steps`}
      >
        {shown.map((index, place) => {
          let y = STEPS_PX;
          return (
            <g
              key={index}
              class={chosen === null || chosen === index ? "" : "is-other"}
              onClick={() => choose(chosen === index ? null : index)}
            >
              <title>{stepTitle(data, index)}</title>
              <rect x={place * width} width={width} height={STEPS_PX} />
              {data.parts.map(({ role, ms }) => {
                const height = (STEPS_PX * (ms[index] ?? 0)) / longest;
                y -= height;
                return (
                  <rect
                    key={role}
                    x={(place + 0.08) * width}
                    width={0.84 * width}
                    y={y}
                    height={height}
                    fill={roleColour(view.theme, role)}
                  />
                );
              })}
            </g>
          );
        })}
      </svg>
      <figcaption class="row small quiet">
        <span>step {data.step[shown[0] ?? 0]}</span>
        <span class="end">step {data.step[shown.at(-1) ?? 0]}</span>
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

function deviceColumns(
  { devicesStep }: ProfileResponse,
  { byteUnit }: ViewProps,
): readonly PlainColumn<ProfiledDevice>[] {
  const share = (
    title: string,
    hint: string,
    of: (one: ProfiledDevice) => number | null,
  ): PlainColumn<ProfiledDevice> => ({
    ...{ title, hint, look: "num" },
    cell: (one) => <Share of={of(one)} />,
  });
  return [
    {
      title: `Device${devicesStep === null ? "" : `, step ${devicesStep}`}`,
      hint:
        devicesStep === null
          ? "From the first profiled step’s start to the last one’s end"
          : "In the chosen step alone",
      cell: ({ device, name, capability }) => (
        <>
          GPU {device}
          {name !== null && ` · ${name}`}
          {capability !== null && <span class="quiet"> · capability {capability}</span>}
        </>
      ),
    },
    {
      title: "memory",
      hint: "All of the device’s memory, as the profiler wrote it; not what was used.",
      look: "num",
      cell: ({ totalBytes }) => (
        <span title={formatBytesExact(totalBytes)}>
          {formatBytes(totalBytes, byteUnit)}
        </span>
      ),
    },
    {
      title: "kernels",
      hint: "Kernels that ran on it while the profiler did, those of collectives included; of one step those that began in it.",
      look: "num",
      cell: ({ numKernels }) => formatInteger(numKernels),
    },
    share(
      "utilization",
      "Time in which at least one kernel ran ÷ time from the first profiled step’s start to the last one’s end, or the length of the chosen step. A kernel of one thread counts as much as one that fills the device: 100 % may be a device that is nearly idle.",
      (one) => one.utilization,
    ),
    share(
      "est. SM efficiency",
      "Mean over the same time of min(1, blocks per SM of the kernels that run): 64 blocks on 80 SMs are 0.8. A block of one thread counts as much as a full one.",
      (one) => one.smEfficiency,
    ),
    share(
      "est. occupancy",
      "Est. achieved occupancy, mean of the kernels weighted by their time: active warps of an SM ÷ those it could have, estimated from the launch configuration and not measured. 15 to 30 % may be as good as it gets.",
      (one) => one.occupancy,
    ),
    share(
      "tensor cores",
      "Time of kernels that use tensor cores ÷ time of all kernels; of one step, of what lies in it. Judged by names alone (Volta to Blackwell): a kernel of another name counts as not using them.",
      (one) => one.tensorCoreShare,
    ),
  ];
}
