import { useMemo } from "preact/hooks";
import type {
  FunctionsResponse,
  ModuleValues,
  StatOfCalls,
} from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { formatInteger } from "../../../base/bytes";
import { categoryColour } from "../../../model/category";
import {
  formatExact,
  formatQuantity,
  formatSigned,
} from "../../../model/words/quantity";
import { CopyIcon, Status } from "../../../widgets/icon/icon";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Nothing, Waiting } from "../../../widgets/state/state";
import { TextButton } from "../../shared/controls/choices";
import { usePageState } from "../../shared/page_state";
import { AbsentList } from "../../shared/panels/absent_list";
import { callLines, OverCallsChart, OverRanks } from "../../shared/panels/over_calls";
import type { ViewProps } from "../../shared/view_props";
import { AnswerTable } from "../../shared/table/answer_table";
import { Pinned, useMomentStep } from "../history/pinned";
import { ColumnPicker, Controls } from "./controls";
import { CALLS, SIDES } from "./params";
import "./calls.css";

const TABLE_PX = 400;
const VALUES_PX = 320;
const CHART_PX = 180;
const HISTORIES_PX = 260;

export function CallsView(view: ViewProps) {
  const page = usePageState(view, CALLS);
  const [{ function: name, phase, attempt, iteration, stat, stats, sides }] = page;
  const pinned = useMomentStep(view);
  const query = {
    run: view.run.id,
    rank: view.ranks.rank,
    function: name,
    phase,
    stat,
    stats,
    attempt,
    iteration,
    step: pinned?.step ?? null,
    sides: sides.length === SIDES.length ? null : sides.join(),
  };
  const { data, stale, error } = useLive(view.client, "functions", query, view.pollMs);
  return (
    <div class={`column functions ${stale ? "stale" : ""}`} aria-busy={stale}>
      <Waiting error={error} hasContent={data !== null} blocksPx={[32, 400]} />
      {data !== null && data.function === null && (
        <>
          <Nothing title="No calls of functions were collected in this run">
            <p>
              Decorate a function with <code>@mb.profiled</code>, or open{" "}
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
            step={finiteOrNull(data.calls.step[data.selected ?? -1])}
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

function finiteOrNull(value: number | undefined): number | null {
  return Number.isFinite(value) ? (value ?? null) : null;
}

interface OfCalls {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
}

interface BodyProps extends OfCalls {
  readonly page: ReturnType<typeof usePageState<typeof CALLS>>;
}

function Body({ view, data, page }: BodyProps) {
  const [state, setState] = page;
  const controls = { data, state, setState };
  const { iteration, attempt } = data.calls;
  const { function: name, phase, rank, source, drawn, selected } = data;
  return (
    <>
      <Controls {...controls} />
      <Notes data={data} rank={view.ranks.rank} />
      <section class="column-tight" aria-label="Memory at start and end of each call">
        <p class="functions-growth">{data.growth}</p>
        {drawn !== null && <Drawn view={view} data={data} drawn={drawn} />}
      </section>
      {drawn === null && <OneCall view={view} data={data} />}
      <div class="functions-table">
        <AnswerTable
          view={view}
          selected={selected}
          shell={view}
          table={data.table}
          word="order"
          onSelect={(id) =>
            setState({ iteration: iteration[id] ?? null, attempt: attempt[id] ?? null })
          }
          head={
            <>
              <h2>{data.table.title}</h2>
              {data.stats.length > 1 && <ColumnPicker {...controls} />}
            </>
          }
          about={{ function: name, phase, rank, source }}
          heightPx={TABLE_PX}
        />
      </div>
      {drawn !== null && <OneCall view={view} data={data} />}
      {data.tables.map((values) => (
        <ValueTable
          key={`${values.kind} ${name ?? ""} ${data.attempt ?? 0} ${data.iteration ?? 0}`}
          view={view}
          data={data}
          values={values}
        />
      ))}
      <Histories view={view} data={data} />
      <AbsentList absent={data.absent} />
    </>
  );
}

function Notes(props: {
  readonly data: FunctionsResponse;
  readonly rank: number | null;
}) {
  const { data, rank } = props;
  const notes = [
    data.source === "imported" ? "Imported from files of MemProfiler." : "",
    rank !== null && rank !== data.rank
      ? `Rank ${rank} has no calls of this function; rank ${data.rank ?? 0} is shown.`
      : "",
  ].filter(Boolean);
  return notes.length === 0 ? null : <p>{notes.join(" ")}</p>;
}

function Drawn({ view, data, drawn }: OfCalls & { readonly drawn: StatOfCalls }) {
  const { calls, overRanks: ranks } = data;
  const { stat } = drawn;
  const { label, unit } = stat;
  const over = useMemo(() => {
    const timeMs = calls.startMs.map((start, i) =>
      Number.isFinite(start) ? start : (calls.endMs[i] ?? NaN),
    );
    return callLines(calls.step, timeMs, [
      ["start", drawn.start],
      ["end", drawn.end],
    ]);
  }, [calls, drawn]);
  const word = (value: number | undefined): string =>
    formatQuantity(value ?? NaN, unit, view.byteUnit);
  return (
    <div class="functions-charts">
      <OverCallsChart
        view={view}
        over={over}
        unit={unit}
        label={`${label} around ${data.function ?? ""}`}
        title={`${label} at start and end`}
        fromZero={false}
        heightPx={CHART_PX}
      />
      {/* Bars show bytes; counts and hook values are only in the table. */}
      {ranks !== null && ranks.unit === "bytes" && (
        <OverRanks
          view={view}
          label={`${label} by rank`}
          title={`${label} after iteration ${data.iteration ?? 0} on`}
          rank={ranks.rank}
          bytes={ranks.end}
          ofRanks={ranks.ofRanks}
          facts={(i) => [
            ["Start", word(ranks.start[i])],
            ["End", word(ranks.end[i]), formatExact(ranks.end[i] ?? NaN, "bytes")],
            [
              "Difference",
              formatSigned(ranks.difference[i] ?? NaN, "bytes", view.byteUnit),
            ],
          ]}
          heightPx={CHART_PX}
        />
      )}
    </div>
  );
}

function OneCall({ view, data }: OfCalls) {
  const { selected } = data;
  if (selected === null) return null;
  const kinds = data.calls.collected[selected] ?? "";
  const { moduleWindow: window, numOwnHistories, histories } = data;
  const own = numOwnHistories > 0 ? histories[0] : undefined;
  return (
    <p class="row">
      <strong>
        {data.function}, iteration {formatInteger(data.iteration ?? 0)}
      </strong>
      <span class="quiet">
        {kinds === "" ? "only its measurements" : `collected: ${kinds}`}
      </span>
      {window !== null && (
        <TextButton press={() => view.showPage("modules", { window })}>
          Its modules’ memory
        </TextButton>
      )}
      {own !== undefined && (
        <TextButton
          press={() => view.showPage("blocks", { history: own.id, moment: null })}
        >
          Its blocks
        </TextButton>
      )}
    </p>
  );
}

function ValueTable(props: OfCalls & { readonly values: ModuleValues }) {
  const { view, data, values } = props;
  const { kind, table, incomplete } = values;
  const { function: called, phase, rank, attempt, iteration } = data;
  const colours = useMemo(
    () => ({ activation: categoryColour(view.theme, "activation") }),
    [view.theme],
  );
  return (
    <AnswerTable
      view={view}
      table={table}
      colours={colours}
      word={`${kind}_order`}
      find={{ label: `Find in ${table.title.toLowerCase()}`, word: `${kind}_find` }}
      about={{ function: called, phase, rank, attempt, iteration }}
      heightPx={VALUES_PX}
    >
      {incomplete && (
        <p>
          <Status look={{ word: "Incomplete", icon: "warning", tone: "warn" }} /> The
          call ended in an error: modules that it did not reach are not listed.
        </p>
      )}
    </AnswerTable>
  );
}

export function Histories(props: {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
}) {
  const { view, data } = props;
  const { histories, historyTable: table, exportCommand: command } = data;
  if (histories.length === 0) return null;
  return (
    <>
      <AnswerTable
        view={view}
        table={table}
        word="history_order"
        head={
          <>
            <h2 id="histories">{table.title}</h2>
            <span class="quiet">{table.summary}</span>
          </>
        }
        onSelect={(row) => {
          const history = histories[row]?.id ?? null;
          view.showPage("blocks", { history, moment: null });
        }}
        shell={view}
        about={{ rank: data.rank }}
        heightPx={HISTORIES_PX}
      />
      {command !== "" && (
        <p>
          <span class="quiet">
            As pickles that pytorch.org/memory_viz reads, LOGDIR being what TensorBoard
            was given:
          </span>{" "}
          <code>{command}</code> <CopyIcon label="Copy the command" text={command} />
        </p>
      )}
    </>
  );
}
