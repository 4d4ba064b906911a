import { useState } from "preact/hooks";
import type { TraceReport } from "../../../../api/types.gen";
import { useLive } from "../../../../api/use_live";
import { useOnce } from "../../../../api/use_once";
import { asSentence } from "../../../../model/words/source_label";
import { Icon } from "../../../../widgets/icon/icon";
import type { XRange } from "../../../../widgets/plot/range";
import { Failure, Skeleton, Waiting } from "../../../../widgets/state/state";
import { Choice, TextButton } from "../../../shared/controls/choices";
import { NotCollected } from "../../../shared/panels/not_collected";
import type { ViewProps } from "../../../shared/view_props";
import { MemoryPart } from "./memory_part";
import { OperatorsPart } from "./operators_part";
import { TraceTable } from "./trace_table";

/** Of the memory's curve. */
const COLUMNS = 1_200;

export function Summary(view: ViewProps) {
  const { rank, filter } = view.ranks;
  const query = { run: view.run.id, rank, ranks: rank === null ? filter : null };
  const { data, error } = useLive(view.client, "trace_reports", query, view.pollMs);
  const chosen =
    data === null ? null : chosenReport(data.reports, view.params.get("report"));
  const isMissing = data?.stillReading === false && view.run.madeOf !== "traces";
  return (
    <div class="stacked" aria-busy={data === null}>
      <TraceTable view={view} route="trace_path" />
      <TraceTable view={view} route="trace_idle" />
      <Waiting
        error={error}
        hasContent={data !== null}
        note="MemBoard retries automatically."
        blocksPx={[420]}
      />
      {data !== null && chosen === null && view.run.madeOf === "traces" && (
        <p class="quiet">
          <TextButton press={() => view.showPage("operators", {})}>
            Operators
          </TextButton>{" "}
          and their memory are summed up on a page of their own.
        </p>
      )}
      {data !== null && chosen === null && isMissing && (
        <NotCollected
          title="No summary of a torch profile in this run"
          absent={data.absent}
          snippet={SNIPPET}
          note="It is summed up when a cycle of the schedule ends, beside training. This page updates automatically."
        />
      )}
      {data !== null && chosen !== null && (
        <>
          <Head view={view} reports={data.reports} chosen={chosen} />
          <OneReport key={chosen.id} view={view} id={chosen.id} />
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
    <header>
      <div class="row">
        <Choice
          label="Trace"
          value={chosen.id}
          of={reports.map(({ id, title }) => [id, title])}
          onChange={(report) => view.setParams({ report, m0: null, m1: null }, "push")}
        />
        <span class="quiet small">{chosen.facts.join(" · ")}</span>
      </div>
      {chosen.problem !== "" && (
        <p role="alert" class="tone-warn">
          <Icon name="warning" sizePx={14} /> {asSentence(chosen.problem)}
        </p>
      )}
    </header>
  );
}

function OneReport({ view, id }: { readonly view: ViewProps; readonly id: string }) {
  const [range, setRange] = useState<XRange | null>(null);
  const { data, error } = useOnce(view.client, "trace_report", {
    run: view.run.id,
    report: id,
    device: view.params.get("report_device") ?? null,
    x0: range?.low ?? null,
    x1: range?.high ?? null,
    px: COLUMNS,
  });
  if (data === null) {
    return error === null ? <Skeleton heightPx={420} /> : <Failure failure={error} />;
  }
  return (
    <>
      <OperatorsPart view={view} answer={data} />
      <MemoryPart {...{ view, range, setRange }} answer={data} />
    </>
  );
}

const SNIPPET = `collector.record(..., torch_profiler={"record_shapes": True, "with_stack": True})`;

/** The named one, else the newest of the lowest rank; null: none. */
export function chosenReport(
  reports: readonly TraceReport[],
  id: string | undefined,
): TraceReport | null {
  const named = reports.find((one) => one.id === id);
  if (named !== undefined) return named;
  const rank = reports[0]?.rank;
  return reports.findLast((one) => one.rank === rank) ?? null;
}
