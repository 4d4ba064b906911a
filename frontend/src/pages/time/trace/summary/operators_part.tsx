import type { TraceReportResponse } from "../../../../api/types.gen";
import { CopyIcon } from "../../../../widgets/icon/copy_icon";
import { Segmented } from "../../../shared/controls/choices";
import { oneOf, usePageState } from "../../../shared/page_state";
import type { ViewProps } from "../../../shared/view_props";
import { AnswerTable } from "../../profiled/answer_table";

const TABLE_PX = 420;
const FORMS = ["text", "table"] as const;
const WORDS = { form: oneOf("form", FORMS, "text") };

const FORM_WORDS = {
  text: ["Text", "As set by torch_profiler.sort_by, row_limit and name_width"],
  table: ["Table", "All operators; click a column to sort"],
} as const;

export function OperatorsPart(props: {
  readonly view: ViewProps;
  readonly answer: TraceReportResponse;
}) {
  const { view } = props;
  const { summary, operators, report } = props.answer;
  const [{ form }, setState] = usePageState(view, WORDS);
  const head = (
    <>
      <h3>Operators</h3>
      {operators.numRows > 0 && (
        <Segmented
          label="Operator format"
          options={FORMS}
          chosen={form}
          words={(one) => FORM_WORDS[one]}
          onChoose={(one) => setState({ form: one })}
        />
      )}
    </>
  );
  if (form === "table" && operators.numRows > 0) {
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
