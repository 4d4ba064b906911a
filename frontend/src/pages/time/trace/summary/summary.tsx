/** What our own recordings say of the traces they saved: tables, operators, memory. */

import { useEffect, useState } from "preact/hooks";
import type { Query } from "../../../../api/client";
import type { Recorded, TraceReport } from "../../../../api/types.gen";
import { useLive } from "../../../../api/use_live";
import { useOnce } from "../../../../api/use_once";
import { asSentence } from "../../../../model/words/source_label";
import { Icon } from "../../../../widgets/icon/icon";
import { Failure, Skeleton, Waiting } from "../../../../widgets/state/state";
import { Choice } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";
import { IdlePart } from "./idle_part";
import { MemoryPart } from "./memory_part";
import { OperatorsPart } from "./operators_part";
import { NotCollected } from "../../../shared/panels/not_collected";
import { formatBytes, threeDigits } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import "./summary.css";

const READING_POLL_MS = 1_000;

export function Summary(view: ViewProps) {
  const { rank, filter } = view.ranks;
  const query: Query = {
    run: view.run.id,
    rank,
    ranks: rank === null ? filter : null,
  };
  const [reading, setReading] = useState(true);
  const { data, error } = useLive(
    view.client,
    "trace_reports",
    query,
    reading ? READING_POLL_MS : view.pollMs,
  );
  useEffect(() => setReading(data === null || data.stillReading), [data]);
  const chosen =
    data === null ? null : chosenReport(data.reports, view.params.get("report"));
  return (
    <div class="trace-report" aria-busy={data === null}>
      <IdlePart view={view} />
      <Waiting
        error={error}
        hasContent={data !== null}
        note="MemBoard retries automatically."
        blocksPx={[420]}
      />
      {data !== null && chosen === null && !data.stillReading && (
        <NoReports absent={data.absent} hasTraces={view.run.madeOf === "traces"} />
      )}
      {data !== null && chosen !== null && (
        <>
          <Head view={view} reports={data.reports} chosen={chosen} />
          <OneReport key={chosen.id} view={view} chosen={chosen} absent={data.absent} />
        </>
      )}
    </div>
  );
}

function Head(props: {
  readonly view: ViewProps;
  readonly reports: readonly TraceReport[];
  readonly chosen: TraceReport;
}) {
  const { view, reports, chosen } = props;
  return (
    <header class="trace-report-head">
      <Choice
        label="Trace"
        value={chosen.id}
        onChange={(report) => view.setParams({ report, m0: null, m1: null }, "push")}
      >
        {reports.map((one) => (
          <option key={one.id} value={one.id}>
            {reportTitle(one)}
          </option>
        ))}
      </Choice>
      <span class="quiet">{factsOf(chosen).join(" · ")}</span>
      {chosen.problem !== "" && (
        <p role="alert" class="trace-report-problem">
          <Icon name="warning" sizePx={14} /> {asSentence(chosen.problem)}
        </p>
      )}
    </header>
  );
}

function OneReport(props: {
  readonly view: ViewProps;
  readonly chosen: TraceReport;
  readonly absent: readonly Recorded[];
}) {
  const { view, chosen } = props;
  const { data, error } = useOnce(view.client, "trace_report", {
    run: view.run.id,
    report: chosen.id,
    px: 1,
  });
  if (data === null) {
    return error === null ? <Skeleton heightPx={420} /> : <Failure failure={error} />;
  }
  return (
    <>
      <OperatorsPart view={view} answer={data} />
      <MemoryPart view={view} chosen={chosen} answer={data} absent={props.absent} />
    </>
  );
}

/** No recording says anything of a trace: why, and which options change that. */
const SNIPPET = `with collector.record(
    ...,
    schedule={"wait": 10, "warmup": 2, "active": 3, "repeat": 2},
    torch_profiler={
        "enabled": True,        # torch's profiler, in the schedule's active steps
        "operators": True,      # the tables of this page (automatic)
        "record_shapes": True,  # these two add memory by category
        "with_stack": True,
    },
) as rec:`;

function NoReports(props: {
  readonly absent: readonly Recorded[];
  /** Only trace files are there, which nobody recorded with MemBoard. */
  readonly hasTraces: boolean;
}) {
  return (
    <NotCollected
      title="No summary of a torch profile in this run"
      absent={props.absent}
      snippet={SNIPPET}
      note={
        props.hasTraces
          ? "The run's trace files were written without MemBoard's recorder, which sums them up while it saves them: their operators are under Operators."
          : "It is summed up when a cycle of the schedule ends, beside training. This page updates automatically."
      }
    />
  );
}

/** The one that is named, else the newest of the lowest rank; null: there is none. */
export function chosenReport(
  reports: readonly TraceReport[],
  id: string | undefined,
): TraceReport | null {
  const named = reports.find((one) => one.id === id);
  if (named !== undefined) return named;
  const rank = reports[0]?.rank;
  return reports.findLast((one) => one.rank === rank) ?? null;
}

function stepWords({
  firstStep,
  lastStep,
}: Pick<TraceReport, "firstStep" | "lastStep">): string {
  if (firstStep === null || lastStep === null) return "";
  return firstStep === lastStep
    ? `step ${firstStep}`
    : `steps ${firstStep}–${lastStep}`;
}

/** `rank 0, cycle 2, steps 10–11`. */
export function reportTitle(report: TraceReport): string {
  const { rank, cycle } = report;
  const parts = [`rank ${rank}`];
  if (cycle !== null && cycle > 0) parts.push(`cycle ${cycle}`);
  const steps = stepWords(report);
  if (steps !== "") parts.push(steps);
  return parts.join(", ");
}

export function formatFlops(flops: number): string {
  const units = ["", "K", "M", "G", "T", "P", "E"];
  let scaled = flops;
  let at = 0;
  while (scaled >= 999.5 && at < units.length - 1) {
    scaled /= 1000;
    at += 1;
  }
  return `${threeDigits(scaled)} ${units[at] ?? ""}`.trim();
}

export function factsOf(report: TraceReport): readonly string[] {
  const { seconds, activities, options, flops, numBytes, kept, remote, path } = report;
  const where = remote !== "" ? ` at ${remote}` : kept ? "" : ", no longer kept";
  return [
    ...(seconds === null ? [] : [formatSeconds(seconds)]),
    ...(activities.length === 0 ? [] : [`recorded ${activities.join(", ")}`]),
    ...(options.length === 0 ? [] : [`with ${options.join(", ")}`]),
    ...(flops === null || flops === 0 ? [] : [`${formatFlops(flops)}FLOP counted`]),
    ...(path === ""
      ? ["its trace was not saved"]
      : [`${path.slice(path.lastIndexOf("/") + 1)}, ${formatBytes(numBytes)}${where}`]),
  ];
}
