/**
 * Calls: memory at the start and end of each collected call, and what hooks, saved
 * tensors, module tracking and allocator captures found inside one of them.
 */

import { useMemo } from "preact/hooks";
import type { FunctionsResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { formatInteger } from "../../../base/bytes";
import { useCommands } from "../../../base/use_commands";
import { originOf } from "../../../model/words/origin";
import { formatQuantity } from "../../../model/words/quantity";
import { exportCommands } from "../../../widgets/export/export_commands";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { TABLE_FORMATS, type ExportSource } from "../../../widgets/export/source";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Nothing, Waiting } from "../../../widgets/state/state";
import { TreeTable } from "../../../widgets/tree_table/tree_table";
import { AbsentList } from "../../shared/panels/absent_list";
import type { ViewProps } from "../../shared/view_props";
import { callColumns, callRows, callsTable, kindsOf, selectedCall } from "./call_rows";
import { ColumnPicker, Controls } from "./controls";
import "./calls.css";
import { Histories } from "./histories";
import { Over } from "./over";
import {
  functionsQuery,
  orderAfterClick,
  readFunctions,
  type FunctionsParams,
} from "./params";
import { shownStats } from "./stats";
import { ValueTable } from "./value_table";
import { activationList, hookList } from "./values";

const TABLE_PX = 400;

export function CallsView(props: ViewProps) {
  const { client, run, ranks } = props;
  const params = useMemo(() => readFunctions(props.params), [props.params]);
  const query = functionsQuery(run.id, ranks.rank, params);
  const { data, stale, error } = useLive(client, "functions", query, props.pollMs);
  return (
    <div class={stale ? "functions stale" : "functions"} aria-busy={stale}>
      <Waiting error={error} hasContent={data !== null} blocksPx={[32, 400]} />
      {data !== null &&
        (data.function === null ? (
          <>
            <Nothing title="No calls of functions were collected in this run">
              <p>
                Decorate a function with <code>@collector.profiled</code>, or open{" "}
                <code>rec.span("eval", memory=True)</code> around it: by default its
                second call is collected.
              </p>
            </Nothing>
            <AbsentList absent={data.absent} />
            <Histories data={data} byteUnit={props.byteUnit} />
          </>
        ) : (
          <Body view={props} data={data} params={params} />
        ))}
      {data !== null && data.problems.length > 0 && (
        <ProblemList problems={data.problems} />
      )}
    </div>
  );
}

interface BodyProps {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
  readonly params: FunctionsParams;
}

function Body({ view, data, params }: BodyProps) {
  const { theme, byteUnit, setParams } = view;
  const drawn =
    data.stats.find(({ name }) => name === data.overRanks?.stat) ??
    data.stats[0] ??
    null;
  const shown = useMemo(
    () => shownStats(data.stats, params.stats, drawn),
    [data.stats, params.stats, drawn],
  );
  const controls = { data, params, shown, drawn, setParams };
  const columns = useMemo(
    () => callColumns({ data, stats: shown, sides: params.sides, theme, byteUnit }),
    [data, shown, params.sides, theme, byteUnit],
  );
  const rows = useMemo(
    () => callRows(data, params, shown),
    [data, params.sort, params.descending, shown],
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
  useCommands(view.commands, () =>
    exportCommands({
      view: "calls",
      subject: "table of calls",
      formats: TABLE_FORMATS,
      source: () => source,
      say: view.say,
    }),
  );
  return (
    <>
      <Controls {...controls} />
      <Notes data={data} rank={view.ranks.rank} />
      {drawn !== null && <Over view={view} data={data} stat={drawn} />}
      <section class="functions-table" aria-label="Calls">
        <div class="panel-head functions-head">
          <h2>{callsTitle(data)}</h2>
          {data.stats.length > 1 && <ColumnPicker {...controls} />}
          <ExportMenu subject="the table of calls" source={source} />
        </div>
        <TreeTable
          label="Calls"
          columns={columns}
          rows={rows}
          selected={selected}
          onSelect={(id) =>
            setParams({
              iteration: data.calls.iteration[id]?.toString() ?? null,
              attempt: data.calls.attempt[id]?.toString() ?? null,
            })
          }
          onToggle={() => undefined}
          sort={
            params.sort === ""
              ? null
              : { key: params.sort, descending: params.descending }
          }
          onSort={(key) => setParams({ order: orderAfterClick(params, key) })}
          empty="This function has no collected calls on this rank."
          heightPx={TABLE_PX}
        />
      </section>
      {selected !== null && <OneCall view={view} data={data} selected={selected} />}
      <Histories data={data} byteUnit={byteUnit} />
      <AbsentList absent={data.absent} />
    </>
  );
}

function callsTitle(data: FunctionsResponse): string {
  const listed = data.calls.iteration.length;
  const all = data.numCalls;
  const calls = all === 1 ? "1 call" : `${formatInteger(all)} calls`;
  const which = `${calls} of ${data.function ?? ""}`;
  const phase = data.phase === "" ? "" : `, ${data.phase}`;
  const rank = data.rank === null ? "" : `, rank ${data.rank}`;
  const cut = listed < all ? `, the newest ${formatInteger(listed)} listed` : "";
  return `${which}${phase}${rank}${cut}`;
}

/** Where the numbers come from, and what was asked for and is not there. */
function Notes({
  data,
  rank,
}: {
  readonly data: FunctionsResponse;
  readonly rank: number | null;
}) {
  const missing = rank !== null && rank !== data.rank;
  const unsnapped = data.stats.length === 0;
  if (data.source === "recorded" && !missing && !unsnapped) return null;
  return (
    <p class="functions-note">
      {data.source === "imported" && "Imported from files of MemProfiler. "}
      {unsnapped && "No measurements at the start or end of its calls. "}
      {missing &&
        `Rank ${rank} has no calls of this function; rank ${data.rank ?? 0} is shown.`}
    </p>
  );
}

/** What was collected inside the call that is selected. */
function OneCall({
  view,
  data,
  selected,
}: {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
  readonly selected: number;
}) {
  const { theme, byteUnit } = view;
  const { hooks, activations } = data;
  const hookValues = useMemo(
    () => (hooks === null ? null : hookList(hooks, byteUnit)),
    [hooks, byteUnit],
  );
  const saved = useMemo(
    () => (activations === null ? null : activationList(activations, theme, byteUnit)),
    [activations, theme, byteUnit],
  );
  const origin = originOf(data.run);
  const about = {
    function: data.function,
    phase: data.phase,
    rank: data.rank,
    attempt: data.attempt,
    iteration: data.iteration,
  };
  const name = `${data.function ?? ""} ${data.iteration ?? 0} rank ${data.rank ?? 0}`;
  const kinds = kindsOf(data.calls.kinds[selected] ?? 0);
  const iteration = `iteration ${formatInteger(data.iteration ?? 0)}`;
  return (
    <>
      <p class="functions-call">
        <strong>
          {data.function}, {iteration}
        </strong>
        <span class="quiet">
          {kinds.length === 0 ? "nothing collected" : `collected: ${kinds.join(", ")}`}
        </span>
        {data.moduleWindow !== null && (
          <button
            type="button"
            class="text-button"
            onClick={() => view.showPage("modules", { window: data.moduleWindow })}
          >
            Its modules’ memory
          </button>
        )}
      </p>
      {activations !== null && saved !== null && (
        <ValueTable
          key={`activations ${name}`}
          title="Activations saved for backward"
          facts={`${iteration}: ${formatQuantity(activations.totalBytes, "bytes", byteUnit)} saved · npp_compat ${formatQuantity(activations.totalNppCompatBytes, "bytes", byteUnit)}`}
          empty="Nothing was saved for backward in this call."
          incomplete={activations.incomplete}
          name={`activations ${name}`}
          list={saved}
          firstSort={{ key: "saved_bytes", descending: true }}
          origin={origin}
          about={{ ...about, total_bytes: activations.totalBytes }}
        />
      )}
      {hooks !== null && hookValues !== null && (
        <ValueTable
          key={`hooks ${name}`}
          title="Values of hooks, by module"
          facts={`${iteration}, in order of the model`}
          empty="The model has no modules with values."
          incomplete={hooks.incomplete}
          name={`hooks ${name}`}
          list={hookValues}
          firstSort={null}
          origin={origin}
          about={about}
        />
      )}
    </>
  );
}
