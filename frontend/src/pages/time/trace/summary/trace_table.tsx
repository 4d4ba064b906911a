import { useLive } from "../../../../api/use_live";
import { ROW_PX } from "../../../../widgets/row_table/row_table";
import { optional, usePageState, whole } from "../../../shared/page_state";
import type { ViewProps } from "../../../shared/view_props";
import { AnswerTable } from "../../profiled/answer_table";

const MOST_ROWS = 8;
const HEAD_PX = 30;

const WORDS = { source: optional("source"), step: whole("step") };

export function TraceTable(props: {
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
  if (data === null || data.table.numRows === 0) return null;
  const { table, sentences } = data;
  return (
    <AnswerTable
      view={view}
      table={table}
      word={`${route}_sort`}
      heightPx={HEAD_PX + ROW_PX * Math.min(table.numRows, MOST_ROWS)}
    >
      {sentences.map((one) => (
        <p key={one}>{one}</p>
      ))}
    </AnswerTable>
  );
}
