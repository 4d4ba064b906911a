import { useMemo } from "preact/hooks";
import type {
  CompareTracesResponse,
  ProfileResponse,
  TraceMeasure,
} from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { Nothing, Waiting } from "../../../widgets/state/state";
import { Choice, Segmented } from "../../shared/controls/choices";
import { traceWords } from "../../time/profiled/trace_choice";
import { DifferenceRows, type Compared } from "../difference_rows";
import { changes } from "../difference_table";
import { TABLE_WORDS } from "../params";
import type { TracesProps } from "./part";

const TABLE_PX = 560;

const PER_WORDS = {
  trace: ["Trace", "Sums over each whole trace"],
  step: ["Step", "Sums divided by each trace’s number of profiled steps"],
} as const;

export function TraceTables(props: TracesProps) {
  const { view, params, change, a, b } = props;
  const { table } = params;
  const query = {
    ...{ run: a.run.id, source: a.choice.source },
    ...{ b_run: b.run.id, b_source: b.choice.source, table },
  };
  const live = useLive(view.client, "compare_traces", query, view.pollMs);
  const { stale, error } = live;
  const data = live.data?.table === table ? live.data : null;
  return (
    <section
      aria-label="Difference as a table"
      class={stale ? "stale" : ""}
      aria-busy={stale}
    >
      <div class="panel-head">
        <h2>Difference by</h2>
        <Segmented
          label="Group by"
          chosen={table}
          words={TABLE_WORDS}
          onChoose={(one) => change({ table: one, measure: "" }, "push")}
        />
      </div>
      <Waiting error={error} hasContent={data !== null} blocksPx={[TABLE_PX]} />
      {data !== null && <Rows {...props} data={data} />}
    </section>
  );
}

function Rows(props: TracesProps & { readonly data: CompareTracesResponse }) {
  const { params, change, a, b, data } = props;
  const { measures } = data;
  const [aSteps, bSteps] = [a.durationMs.length, b.durationMs.length];
  const usualPer = aSteps === bSteps ? "trace" : "step";
  const per = params.per ?? usualPer;
  const measure = measures.find(({ name }) => name === params.measure) ?? measures[0];
  const compared = useMemo(() => {
    if (measure === undefined) return null;
    return comparedTraces(data, measure, per === "step" ? [aSteps, bSteps] : [1, 1]);
  }, [data, measure, per, aSteps, bSteps]);
  if (measure === undefined || compared === null || data.lacks !== "") {
    return (
      <Nothing title={`Nothing to compare by ${data.table}`}>
        <p>{data.lacks}</p>
      </Nothing>
    );
  }
  return (
    <>
      <DifferenceRows
        {...props}
        of={compared}
        heightPx={TABLE_PX}
        about={{ a: about(a), b: about(b), per }}
      >
        <Choice
          label="Of"
          value={measure.name}
          onChange={(name) =>
            change({ measure: name === measures[0]?.name ? "" : name }, "push")
          }
          of={measures.map(({ name, title }) => [name, title])}
        />
        <Segmented
          label="Per step or per trace"
          title="Per"
          chosen={per}
          words={PER_WORDS}
          onChoose={(one) => change({ per: one === usualPer ? null : one })}
        />
      </DifferenceRows>
      {data.note !== "" && <p class="quiet">{data.note}</p>}
    </>
  );
}

const SIDES = ["", "a", "b"] as const;

export function comparedTraces(
  { table, title, names, only: sides, measures }: CompareTracesResponse,
  measure: TraceMeasure,
  steps: readonly [number, number],
): Compared {
  const only = Array.from(sides, (side) => SIDES[side] ?? "");
  const pairs = ({ a, b, isOfCall }: TraceMeasure) => {
    const [x, y] = isOfCall ? [1, 1] : steps;
    return { a: a.map((one) => one / x), b: b.map((one) => one / y), only };
  };
  return {
    ...{ key: table, quantity: measure.name, unit: measure.unit, title },
    ...pairs(measure),
    // The return type of a C++ template carries no information.
    names: names.map((name) => name.replace(/^void /, "")),
    texts: names,
    more: [],
    exported: measures.flatMap((one): Compared["exported"] => {
      if (one === measure) return [];
      const of = pairs(one);
      return [
        { key: `a_${one.name}`, values: of.a },
        { key: `b_${one.name}`, values: of.b },
        { key: `difference_${one.name}`, values: changes(of) },
      ];
    }),
  };
}

function about({ run, choice }: ProfileResponse): unknown {
  const trace = choice.traces.find(({ id }) => id === choice.source);
  return { run: run.name, trace: trace === undefined ? null : traceWords(trace) };
}
