import type { ComponentChildren } from "preact";
import type { CompareTracesResponse, ProfileResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { Nothing, Waiting } from "../../../widgets/state/state";
import { Choice, Segmented } from "../../shared/controls/choices";
import { AnswerTable } from "../../shared/table/answer_table";
import { DifferenceRows } from "../difference_rows";
import { DifferenceTree } from "./difference_tree";
import { PER_WORDS, TABLE_WORDS, type TracesProps } from "../params";

const TABLE_PX = 560;

export function TraceTables(props: TracesProps) {
  const { view, params, change, a, b } = props;
  const { table, measure, per } = params;
  const query = {
    run: a.run.id,
    source: a.choice.source,
    table,
    measure,
    per,
    b_run: b.run.id,
    b_source: b.choice.source,
  };
  const live = useLive(view.client, "compare_traces", query, view.pollMs);
  const { stale, error } = live;
  const data = live.data?.table === table ? live.data : null;
  const { data: latest } = live;
  return (
    <>
      {latest !== null && (
        <section class="compare-numbers">
          <p class="compare-sentence">
            <strong>{latest.sentence}</strong>
          </p>
          <AnswerTable view={view} table={latest.roles} word="rolesort" />
        </section>
      )}
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
            labels={TABLE_WORDS}
            onChoose={(option) => change({ table: option, measure: "" }, "push")}
          />
        </div>
        <Waiting error={error} hasContent={data !== null} blocksPx={[TABLE_PX]} />
        {data !== null && (data.measure === "" || data.lacks !== "") && (
          <Nothing title={`Nothing to compare by ${table}`}>
            <p>{data.lacks}</p>
          </Nothing>
        )}
        {data !== null && data.measure !== "" && data.lacks === "" && (
          <>
            <Rows {...props} data={data}>
              <Choice
                label="Of"
                value={data.measure}
                onChange={(option) => change({ measure: option }, "push")}
                of={data.measures.map(({ name, title }) => [name, title])}
              />
              <Segmented
                label="Per step or per trace"
                title="Per"
                chosen={data.per}
                labels={PER_WORDS}
                onChoose={(option) => change({ per: option })}
              />
            </Rows>
            {data.note !== "" && <p class="quiet">{data.note}</p>}
          </>
        )}
      </section>
    </>
  );
}

function Rows(
  props: TracesProps & {
    readonly data: CompareTracesResponse;
    readonly children: ComponentChildren;
  },
) {
  const { a, b, data } = props;
  const shown = {
    table: data.rows,
    heightPx: TABLE_PX,
    about: { a: about(a), b: about(b), per: data.per },
  };
  if (data.parent.length === 0) return <DifferenceRows {...props} {...shown} />;
  return <DifferenceTree {...props} {...shown} parent={data.parent} />;
}

function about({ run, choice }: ProfileResponse): unknown {
  const trace = choice.traces.find(({ id }) => id === choice.source);
  return { run: run.name, trace: trace?.title ?? null };
}
