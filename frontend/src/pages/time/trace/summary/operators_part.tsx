import type { TraceReportResponse } from "../../../../api/types.gen";
import { CopyIcon } from "../../../../widgets/icon/copy_icon";
import { Switch } from "../../../shared/controls/choices";
import { switched } from "../../../shared/page_state";
import type { ViewProps } from "../../../shared/view_props";
import { AnswerTable } from "../../profiled/answer_table";

const TABLE_PX = 420;
const FORM = switched(
  "form",
  {
    text: ["Text", "As set by torch_profiler.sort_by, row_limit and name_width"],
    table: ["Table", "All operators; click a column to sort"],
  },
  "text",
);

export function OperatorsPart(props: {
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
        heightPx={TABLE_PX}
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
