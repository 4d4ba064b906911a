/**
 * Calls: memory at the start and end of each collected call, and what hooks, saved
 * tensors, module tracking and allocator captures found inside one of them.
 */

import { useMemo } from "preact/hooks";
import type { FunctionsResponse, FunctionStat } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import {
  formatExact,
  formatQuantity,
  formatSigned,
} from "../../../model/words/quantity";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { RowTable } from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import { Nothing, Waiting } from "../../../widgets/state/state";
import { AbsentList } from "../../shared/panels/absent_list";
import { usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { useMomentStep } from "../history/moment";
import { Pinned } from "../history/pinned";
import { callColumns, callsTable, NEWEST_FIRST, selectedCall } from "./columns";
import { ColumnPicker, Controls } from "./controls";
import "./calls.css";
import { Histories } from "./histories";
import { callLines, OverCallsChart, OverRanks } from "../../shared/panels/over_calls";
import { CALLS, shownStats } from "./params";
import { ValueTable } from "./values";

const TABLE_PX = 400;
const CHART_PX = 180;

export function CallsView(view: ViewProps) {
  const page = usePageState(view, CALLS);
  const [{ function: name, phase, attempt, iteration, stat }] = page;
  const pinned = useMomentStep(view);
  const query = {
    ...{ run: view.run.id, rank: view.ranks.rank, function: name, phase, stat },
    ...{ attempt, iteration, step: pinned?.step ?? null },
  };
  const { data, stale, error } = useLive(view.client, "functions", query, view.pollMs);
  return (
    <div class={stale ? "functions stale" : "functions"} aria-busy={stale}>
      <Waiting error={error} hasContent={data !== null} blocksPx={[32, 400]} />
      {data !== null && data.function === null && (
        <>
          <Nothing title="No calls of functions were collected in this run">
            <p>
              Decorate a function with <code>@collector.profiled</code>, or open{" "}
              <code>rec.span("eval", memory=True)</code> around it: by default its
              second call is collected.
            </p>
          </Nothing>
          <AbsentList absent={data.absent} />
          <Histories view={view} data={data} />
        </>
      )}
      {typeof data?.function === "string" && (
        <>
          <Pinned
            view={view}
            pinned={pinned}
            step={known(data.calls.step[selectedCall(data) ?? -1])}
            absent={iteration === null ? "No call was collected in it" : null}
          />
          <Body view={view} data={data} page={page} />
        </>
      )}
      {data !== null && data.problems.length > 0 && (
        <ProblemList problems={data.problems} />
      )}
    </div>
  );
}

function known(value: number | undefined): number | null {
  return Number.isFinite(value) ? (value ?? null) : null;
}

interface OfCalls {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
}

function Body(
  props: OfCalls & {
    readonly page: ReturnType<typeof usePageState<typeof CALLS>>;
  },
) {
  const { view, data, page } = props;
  const [state, setState] = page;
  const { theme, byteUnit } = view;
  const drawn =
    data.stats.find(({ name }) => name === data.overRanks?.stat) ??
    data.stats[0] ??
    null;
  const shown = useMemo(
    () => shownStats(data.stats, state.stats, drawn),
    [data.stats, state.stats, drawn],
  );
  const controls = { data, state, setState, shown, drawn };
  const columns = useMemo(
    () => callColumns({ data, stats: shown, sides: state.sides, theme, byteUnit }),
    [data, shown, state.sides, theme, byteUnit],
  );
  const { iteration, attempt } = data.calls;
  const sorted = useSort(
    columns,
    iteration.length,
    NEWEST_FIRST,
    state.order,
    (order) => setState({ order }),
  );
  const selected = selectedCall(data);
  const source: ExportSource = {
    origin: originOf(data.run),
    name: `${data.function ?? ""} rank ${data.rank ?? 0}`,
    table: () => callsTable(data, shown),
    about: () => ({
      function: data.function,
      phase: data.phase,
      rank: data.rank,
      source: data.source,
    }),
  };
  return (
    <>
      <Controls {...controls} />
      <Notes data={data} rank={view.ranks.rank} />
      {drawn !== null && <Drawn view={view} data={data} stat={drawn} />}
      <section class="functions-table" aria-label="Calls">
        <div class="panel-head functions-head">
          <h2>{callsTitle(data)}</h2>
          {data.stats.length > 1 && <ColumnPicker {...controls} />}
          <ExportMenu subject="the table of calls" source={source} shell={view} />
        </div>
        <RowTable
          {...sorted}
          label="Calls"
          columns={columns}
          selected={selected}
          onSelect={(id) =>
            setState({ iteration: iteration[id] ?? null, attempt: attempt[id] ?? null })
          }
          empty="This function has no collected calls on this rank."
          heightPx={TABLE_PX}
        />
      </section>
      {selected !== null && (
        <OneCall view={view} data={data} kinds={data.calls.collected[selected] ?? ""} />
      )}
      <Histories view={view} data={data} />
      <AbsentList absent={data.absent} />
    </>
  );
}

function callsTitle(data: FunctionsResponse): string {
  const listed = data.calls.iteration.length;
  const all = data.numCalls;
  const calls = all === 1 ? "1 call" : `${formatInteger(all)} calls`;
  const phase = data.phase === "" ? "" : `, ${data.phase}`;
  const rank = data.rank === null ? "" : `, rank ${data.rank}`;
  const cut = listed < all ? `, the newest ${formatInteger(listed)} listed` : "";
  return `${calls} of ${data.function ?? ""}${phase}${rank}${cut}`;
}

/** Where the numbers come from, and what was asked for and is not there. */
function Notes({
  data,
  rank,
}: Pick<OfCalls, "data"> & { readonly rank: number | null }) {
  const notes = [
    data.source === "imported" ? "Imported from files of MemProfiler." : "",
    data.stats.length === 0 ? "No measurements at the start or end of its calls." : "",
    rank !== null && rank !== data.rank
      ? `Rank ${rank} has no calls of this function; rank ${data.rank ?? 0} is shown.`
      : "",
  ].filter(Boolean);
  return notes.length === 0 ? null : <p>{notes.join(" ")}</p>;
}

/** One statistic of the function over its calls, and of the chosen call over ranks. */
function Drawn({ view, data, stat }: OfCalls & { readonly stat: FunctionStat }) {
  const { calls, overRanks: ranks } = data;
  const { label } = stat;
  const over = useMemo(() => {
    const timeMs = calls.startMs.map((start, i) =>
      Number.isFinite(start) ? start : (calls.endMs[i] ?? NaN),
    );
    return callLines(calls.step, timeMs, [
      ["start", stat.start],
      ["end", stat.end],
    ]);
  }, [calls, stat]);
  const word = (value: number | undefined): string =>
    formatQuantity(value ?? NaN, stat.unit, view.byteUnit);
  return (
    <section class="functions-over" aria-label="Memory at start and end of each call">
      <p class="functions-growth">{data.growth}</p>
      <div class="functions-charts">
        <OverCallsChart
          view={view}
          over={over}
          label={`${label} around ${data.function ?? ""}`}
          title={`${label} at start and end`}
          unit={stat.unit}
          fromZero={false}
          heightPx={CHART_PX}
        />
        {/* Bars stand for bytes; counts and hooks' own numbers are told by the table. */}
        {ranks !== null && ranks.unit === "bytes" && (
          <OverRanks
            view={view}
            label={`${label} by rank`}
            title={`${label} at the end of iteration ${data.iteration ?? 0} on`}
            rank={ranks.rank}
            bytes={ranks.end}
            ofRanks={ranks.ofRanks}
            facts={(i) => [
              ["Start", word(ranks.start[i])],
              ["End", word(ranks.end[i])],
              ["", formatExact(ranks.end[i] ?? NaN, "bytes")],
              [
                "Difference",
                formatSigned(ranks.difference[i] ?? NaN, "bytes", view.byteUnit),
              ],
            ]}
            heightPx={CHART_PX}
          />
        )}
      </div>
    </section>
  );
}

/** What was collected inside the call that is selected. */
function OneCall({ view, data, kinds }: OfCalls & { readonly kinds: string }) {
  const { iteration, attempt, moduleWindow: window } = data;
  return (
    <>
      <p class="row">
        <strong>
          {data.function}, iteration {formatInteger(iteration ?? 0)}
        </strong>
        <span class="quiet">
          {kinds === "" ? "only its measurements" : `collected: ${kinds}`}
        </span>
        {window !== null && (
          <button
            type="button"
            class="text-button"
            onClick={() => view.showPage("modules", { window })}
          >
            Its modules’ memory
          </button>
        )}
      </p>
      {data.tables.map((values) => (
        <ValueTable
          key={`${values.kind} ${data.function ?? ""} ${attempt ?? 0} ${iteration ?? 0}`}
          {...{ view, data, values }}
        />
      ))}
    </>
  );
}
