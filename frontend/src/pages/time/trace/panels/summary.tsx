import { useState } from "preact/hooks";
import type { TraceReport, TraceReportResponse } from "../../../../api/types.gen";
import { useLive } from "../../../../api/live/use_live";
import { asSentence } from "../../../../model/words/source_label";
import { CopyIcon, Icon } from "../../../../widgets/icon/icon";
import type { XRange } from "../../../../widgets/plot/range";
import { ROW_PX } from "../../../../widgets/row_table/row_table";
import { WindowStack } from "../../../../widgets/stack/window_stack";
import { Failure, Skeleton, Waiting } from "../../../../widgets/state/state";
import { Choice, Switch, TextButton } from "../../../shared/controls/choices";
import { optional, switched, usePageState, whole } from "../../../shared/page_state";
import { NotCollected } from "../../../shared/panels/not_collected";
import { lookOf, type ViewProps } from "../../../shared/view_props";
import { ProblemLine } from "../../profiled/trace_choice";
import { AnswerTable } from "../../../shared/table/answer_table";

const REPORT_PX = 420;
const SNIPPET = `mb.record(..., torch_profiler={"record_shapes": True, "with_stack": True})`;

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
        blocksPx={[REPORT_PX]}
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
  const { data, error } = useLive(view.client, "trace_report", {
    run: view.run.id,
    report: id,
    device: view.params.get("report_device") ?? null,
    x0: range?.low ?? null,
    x1: range?.high ?? null,
    px: COLUMNS,
  });
  if (data === null) {
    return error === null ? (
      <Skeleton heightPx={REPORT_PX} />
    ) : (
      <Failure failure={error} />
    );
  }
  return (
    <>
      <OperatorsPart view={view} answer={data} />
      <MemoryPart view={view} range={range} setRange={setRange} answer={data} />
    </>
  );
}

/** The named one, else the newest of the lowest rank; null: none. */
export function chosenReport(
  reports: readonly TraceReport[],
  id: string | undefined,
): TraceReport | null {
  const named = reports.find((report) => report.id === id);
  if (named !== undefined) return named;
  const rank = reports[0]?.rank;
  return reports.findLast((report) => report.rank === rank) ?? null;
}

const MOST_ROWS = 8;
/** Many columns have heads of two lines in narrow windows. */
const HEAD_PX = { trace_path: 30, trace_idle: 48 };

const WORDS = { source: optional("source"), step: whole("step") };

function TraceTable(props: {
  readonly view: ViewProps;
  readonly route: "trace_idle" | "trace_path";
}) {
  const { route, view } = props;
  const { client, run, ranks } = view;
  const [{ source, step }] = usePageState(view, WORDS);
  const query = { run: run.id, rank: ranks.rank, source };
  const { data } = useLive(
    client,
    route,
    route === "trace_path" ? { ...query, step } : query,
    view.pollMs,
  );
  if (data === null) return null;
  const { table, sentences, problems } = data;
  const rowsPx = ROW_PX * Math.min(table.numRows, MOST_ROWS);
  return (
    <>
      {route === "trace_path" && <ProblemLine problems={problems} view={view} />}
      {table.numRows > 0 && (
        <AnswerTable
          view={view}
          table={table}
          word={`${route}_sort`}
          heightPx={HEAD_PX[route] + rowsPx}
        >
          {sentences.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </AnswerTable>
      )}
    </>
  );
}

const FORM = switched(
  "form",
  {
    text: ["Text", "As set by torch_profiler.sort_by, row_limit and name_width"],
    table: ["Table", "All operators; click a column to sort"],
  },
  "text",
);

function OperatorsPart(props: {
  readonly view: ViewProps;
  readonly answer: TraceReportResponse;
}) {
  const { view } = props;
  const { summary, operators, report } = props.answer;
  const head = (
    <>
      <h3>Operators</h3>
      {operators.numRows > 0 && (
        <Switch view={view} of={FORM} label="Operator format" />
      )}
    </>
  );
  if (FORM.read(view.params) === "table" && operators.numRows > 0) {
    return (
      <AnswerTable
        view={view}
        table={operators}
        word="operators_sort"
        head={head}
        about={{ trace: report.title }}
        heightPx={REPORT_PX}
      />
    );
  }
  return (
    <section aria-label="Operators">
      <div class="panel-head">
        {head}
        {summary !== "" && <CopyIcon label="Copy the tables" text={summary} />}
      </div>
      {summary === "" ? (
        <p class="quiet">
          They were not summed up: torch_profiler.operators was off, or the trace could
          not be read.
        </p>
      ) : (
        <pre class="box trace-report-text" tabIndex={0} aria-label="Operators as text">
          {summary}
        </pre>
      )}
    </section>
  );
}

const PLOT_PX = 220;

function MemoryPart(props: {
  readonly view: ViewProps;
  readonly answer: TraceReportResponse;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}) {
  const { view, range, setRange } = props;
  const { report, missing, memory } = props.answer;
  if (memory === null) {
    return (
      <section aria-label="Memory by category">
        <h3>Memory by category</h3>
        <p class="quiet">{missing}</p>
      </section>
    );
  }
  const { device, devices } = memory;
  return (
    <section aria-label="Memory by category">
      {devices.length > 1 && (
        <div class="row">
          <Choice
            label="Device"
            value={device}
            of={devices}
            onChange={(value) => {
              setRange(null);
              view.setParams({ report_device: value });
            }}
          />
        </div>
      )}
      <WindowStack
        {...lookOf(view)}
        range={range}
        onRange={setRange}
        label={`Memory by category, ${device}`}
        answer={memory}
        began="the trace began"
        plotPx={PLOT_PX}
        about={{ trace: report.title, device }}
      />
      <p class="quiet small">
        Allocations during the trace, and earlier tensors that it used. More device
        memory may be allocated.
      </p>
    </section>
  );
}
