/** Operators, kernels, modules or memory of two traces, joined by name. */

import { useMemo } from "preact/hooks";
import type { ProfileResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { Nothing, Skeleton, Waiting } from "../../../widgets/state/state";
import { Choice, Segmented } from "../../shared/controls/choices";
import { traceWords, useProfiled } from "../../time/profiled/trace_choice";
import { DifferenceRows } from "../difference_rows";
import { keysOf, TABLE_WORDS } from "../params";
import { comparedTraces, measuresOf, sideOf, TABLES, type TraceSide } from "./joined";
import type { TracesProps } from "./part";

const TABLE_PX = 560;
/** The most rows that a route sends. */
const TOP = 2_000;

const PER_WORDS = {
  trace: ["Trace", "Sums over each whole trace"],
  step: ["Step", "Sums divided by each trace’s number of profiled steps"],
} as const;

export function TraceTables(props: TracesProps) {
  const { view, params, change, a, b } = props;
  const of = params.table;
  const live = [a, b].map(({ run, choice }) =>
    useProfiled(
      view.client,
      TABLES[of][0],
      { run: run.id, source: choice.source, top: TOP },
      view.pollMs,
    ),
  );
  const [aData = null, bData = null] = live.map(({ data }) => data);
  const sides = useMemo(() => {
    const x = aData === null ? null : sideOf(of, aData);
    const y = bData === null ? null : sideOf(of, bData);
    return x === null || y === null ? null : ([x, y] as const);
  }, [of, aData, bData]);
  const error = live.find((one) => one.error !== null)?.error ?? null;
  const stale = live.some((one) => one.stale);
  return (
    <section
      aria-label="Difference as a table"
      class={stale ? "stale" : ""}
      aria-busy={stale}
    >
      <div class="panel-head">
        <h2>Difference by</h2>
        <Segmented
          label="By what"
          options={keysOf(TABLE_WORDS)}
          chosen={of}
          words={(one) => TABLE_WORDS[one]}
          onChoose={(table) => change({ table, measure: "" }, "push")}
        />
      </div>
      <Waiting error={error} hasContent={sides !== null} />
      {sides !== null && <Rows {...props} sides={sides} />}
      {sides === null && error === null && <Skeleton heightPx={TABLE_PX} />}
    </section>
  );
}

function Rows(
  props: TracesProps & { readonly sides: readonly [TraceSide, TraceSide] },
) {
  const { params, change, a, b, sides } = props;
  const of = params.table;
  const measures = measuresOf(of, ...sides);
  const known = measures.find(([column]) => column === params.measure) ?? measures[0];
  const [aSteps, bSteps] = [a.durationMs.length, b.durationMs.length];
  const usualPer = aSteps === bSteps ? "trace" : "step";
  const per = params.per ?? usualPer;
  const measure = known?.[0] ?? "";
  const compared = useMemo(
    () =>
      comparedTraces(of, measure, sides, per === "step" ? [aSteps, bSteps] : [1, 1]),
    [of, measure, sides, per, aSteps, bSteps],
  );
  const empty = sides.map(({ names }) => names.length === 0);
  if (measure === "" || empty.includes(true)) {
    // What a trace did not record is no difference.
    const whose = empty.every(Boolean)
      ? "Neither has"
      : `${empty[0] === true ? "A" : "B"} has`;
    return (
      <Nothing title={`Nothing to compare by ${of}`}>
        <p>
          {whose} {TABLES[of][2]}.
        </p>
      </Nothing>
    );
  }
  const left = sides[0].left + sides[1].left;
  const [ofA, ofB] = sides.map(({ device }) => device);
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
          value={measure}
          onChange={(column) =>
            change({ measure: column === measures[0]?.[0] ? "" : column }, "push")
          }
        >
          {measures.map(([column, title]) => (
            <option key={column} value={column}>
              {title}
            </option>
          ))}
        </Choice>
        <Segmented
          label="Per step or per trace"
          title="Per"
          options={keysOf(PER_WORDS)}
          chosen={per}
          words={(one) => PER_WORDS[one]}
          onChoose={(one) => change({ per: one === usualPer ? null : one })}
        />
      </DifferenceRows>
      {ofA !== "" && (
        <p class="quiet">
          Memory of {ofA}
          {ofA !== ofB && ` in A, of ${ofB ?? ""} in B`}.
        </p>
      )}
      {left > 0 && (
        <p class="quiet">
          {formatInteger(left)} rows of the smallest are not among them; a row that one
          side seems to lack may be one of those.
        </p>
      )}
    </>
  );
}

function about({ run, choice }: ProfileResponse): unknown {
  const trace = choice.traces.find(({ id }) => id === choice.source);
  return { run: run.name, trace: trace === undefined ? null : traceWords(trace) };
}
