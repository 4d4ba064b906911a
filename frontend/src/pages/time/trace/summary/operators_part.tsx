/** Operators of one trace: torch's tables as text, or as a table to sort. */

import { useMemo, useState } from "preact/hooks";
import type {
  TraceReportResponse,
  TraceReportOperators,
} from "../../../../api/types.gen";
import { copyText } from "../../../../base/clipboard";
import { RowTable, type RowColumn } from "../../../../widgets/row_table/row_table";
import { useSort } from "../../../../widgets/row_table/use_sort";
import { Segmented } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";
import { formatBytes, formatInteger, type ByteUnit } from "../../../../base/bytes";
import type { Sort } from "../../../../model/shown_rows";
import { numberColumn, textColumn } from "../../../../widgets/row_table/columns";
import { formatNs, formatNsExact } from "../words";
import { formatFlops } from "./summary";

const TABLE_PX = 420;
const FORMS = ["text", "table"] as const;
type Form = (typeof FORMS)[number];

const FORM_WORDS: Readonly<Record<Form, readonly [string, string]>> = {
  text: ["Text", "As torch_profiler.sort_by, row_limit and name_width ask for"],
  table: ["Table", "All operators; click a column to sort"],
};

export function OperatorsPart(props: {
  readonly view: ViewProps;
  readonly answer: TraceReportResponse;
}) {
  const { view, answer } = props;
  const { summary, operators } = answer;
  const form: Form = view.params.get("form") === "table" ? "table" : "text";
  return (
    <section class="trace-report-part" aria-label="Operators">
      <div class="trace-report-bar">
        <h3>Operators</h3>
        {operators.name.length > 0 && (
          <Segmented
            label="How operators are shown"
            options={FORMS}
            chosen={form}
            words={(one) => FORM_WORDS[one]}
            onChoose={(one) => view.setParams({ form: one === "text" ? null : one })}
          />
        )}
        {form === "text" && summary !== "" && <CopyButton text={summary} />}
      </div>
      {operators.name.length === 0 && summary === "" ? (
        <p class="quiet">
          They were not summed up: torch_profiler.operators was off, or the trace could
          not be read.
        </p>
      ) : form === "text" ? (
        <pre class="trace-report-text" tabIndex={0} aria-label="Operators as text">
          {summary}
        </pre>
      ) : (
        <Table answer={answer} byteUnit={view.byteUnit} />
      )}
    </section>
  );
}

function CopyButton({ text }: { readonly text: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <button
      type="button"
      class="button"
      onClick={() => {
        void copyText(text).then(setCopied);
      }}
    >
      {copied ? "Copied" : "Copy"}
    </button>
  );
}

function Table(props: {
  readonly answer: TraceReportResponse;
  readonly byteUnit: ViewProps["byteUnit"];
}) {
  const { operators } = props.answer;
  const [word, setWord] = useState<string | null>(null);
  const columns = useMemo(
    () => operatorColumns(operators, props.byteUnit),
    [operators, props.byteUnit],
  );
  const num = operators.name.length;
  const sorted = useSort(columns, num, USUAL, word ?? undefined, setWord);
  return (
    <RowTable
      label="Operators of the trace"
      columns={columns}
      {...sorted}
      empty="No operators ran."
      heightPx={TABLE_PX}
    />
  );
}

type Numbers = Exclude<keyof TraceReportOperators, "name">;

/** The order in which they are looked at first. */
const USUAL: Sort = { key: "selfCpuNs", descending: true };

const TITLES: readonly (readonly [Numbers, string, string])[] = [
  ["calls", "Calls", "How often it ran"],
  ["selfCpuNs", "Self CPU", "Self time on the host"],
  ["cpuNs", "CPU", "Its time on the host"],
  ["selfDeviceNs", "Self device", "Time of the kernels that it launched itself"],
  ["deviceNs", "Device", "Time of the kernels launched in it"],
  [
    "selfCpuMemoryBytes",
    "Self CPU memory",
    "Allocated less freed on the host, without the operators inside",
  ],
  ["cpuMemoryBytes", "CPU memory", "Allocated less freed on the host"],
  [
    "selfDeviceMemoryBytes",
    "Self device memory",
    "Allocated less freed on devices, without the operators inside",
  ],
  ["deviceMemoryBytes", "Device memory", "Allocated less freed on devices"],
  ["flops", "FLOP", "As torch counts them"],
];

export function operatorColumns(
  operators: TraceReportOperators,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const text = (key: Numbers, value: number): string => {
    if (key.endsWith("Ns")) return formatNs(value);
    if (key.endsWith("Bytes")) return formatBytes(value, byteUnit);
    return key === "flops" ? formatFlops(value) : formatInteger(value);
  };
  const exact = (key: Numbers, value: number): string =>
    key.endsWith("Ns")
      ? formatNsExact(value)
      : `${formatInteger(value)}${key.endsWith("Bytes") ? " bytes" : ""}`;
  const numbers = TITLES.filter(([key]) => operators[key].some((one) => one !== 0));
  return [
    textColumn("name", "Operator", "minmax(200px, 1fr)", operators.name),
    ...numbers.map(([key, title, hint]) => {
      const width = key === "calls" ? "72px" : key.endsWith("Bytes") ? "132px" : "96px";
      const cell = (value: number) => ({
        text: text(key, value),
        title: exact(key, value),
      });
      return numberColumn(key, title, width, operators[key], cell, hint);
    }),
  ];
}
