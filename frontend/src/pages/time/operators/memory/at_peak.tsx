import type {
  OperatorMemoryResponse,
  TraceMemoryPeak,
} from "../../../../api/types.gen";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
} from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import { categoryColour, categoryLabel } from "../../../../model/category";
import { Switch } from "../../../shared/controls/choices";
import { switched } from "../../../shared/page_state";
import { AnswerTable, type AnswerTableProps } from "../../../shared/table/answer_table";
import type { Colours } from "../../../shared/table/columns";
import { PartBar, type Part } from "../../profiled/part_bar";

const MOST_PX = 264;

export const HOLDERS_BY = switched(
  "peak_by",
  {
    category: ["Category", "What the memory is for"],
    module: ["Module", "In which module it was allocated"],
    phase: ["Phase", "In which part of the step it was allocated"],
    all: ["All three", "Each category, module and phase there is"],
  },
  "category",
);

const UNSEEN =
  "In the allocator’s total but in no event: allocated before the trace began, and retained.";

interface PeakProps extends Pick<AnswerTableProps, "about" | "view"> {
  readonly data: OperatorMemoryResponse;
  readonly colours: Colours;
}

export function AtPeak(props: PeakProps) {
  const { data, view } = props;
  const { byteUnit } = view;
  const { peak } = data;
  if (peak === null || peak.wholeBytes <= 0) {
    return (
      <p class="quiet">
        {data.hasAddresses
          ? "Nothing was allocated in this part, so its peak has no holders."
          : "The trace has no addresses, so holders of the peak are not known."}
      </p>
    );
  }
  const { wholeBytes: whole, unknownBytes, holders } = peak;
  return (
    <AnswerTable
      {...props}
      text=""
      table={holders}
      word="psort"
      heightPx={MOST_PX}
      head={
        <p>
          At the peak, {formatSeconds(peak.timeMs / 1e3)} after the trace began,{" "}
          <b title={formatBytesExact(whole)}>{formatBytes(whole, byteUnit)}</b> were
          allocated
          {unknownBytes > 0 &&
            `; nothing says what ${formatShare(unknownBytes, whole)} of them are for`}
          .
        </p>
      }
    >
      <Bar {...props} peak={peak} />
      <div class="row">
        <Switch
          view={view}
          of={HOLDERS_BY}
          label="Group holders of the peak by"
          title="By"
        />
        {holders.numRows < holders.numAll && (
          <span class="quiet">
            the largest {formatInteger(holders.numRows)} of{" "}
            {counted(holders.numAll, "place")}
          </span>
        )}
      </div>
    </AnswerTable>
  );
}

function Bar({ peak, view, colours }: PeakProps & { readonly peak: TraceMemoryPeak }) {
  const size = (bytes: number): string => formatBytes(bytes, view.byteUnit);
  const parts = peak.parts.map(({ name, numBytes }): Part => {
    const exact = `${formatBytesExact(numBytes)}, ${formatShare(numBytes, peak.wholeBytes)}`;
    return {
      name,
      value: numBytes,
      unseen: name === "",
      label: name === "" ? "Not seen" : categoryLabel(name),
      help: name === "" ? `${exact}\n${UNSEEN}` : exact,
      colour: colours[name] ?? categoryColour(view.theme, "unknown"),
    };
  });
  return (
    <>
      <PartBar label="" parts={parts} longest={peak.wholeBytes} format={size} />
      <p class="row quiet">
        {parts.map(({ name, label, help, colour, value, unseen }) => (
          <span key={name} title={help}>
            <i
              class={unseen === true ? "swatch is-unseen" : "swatch"}
              style={{ backgroundColor: colour }}
            />{" "}
            {label} <b>{size(value)}</b>
          </span>
        ))}
      </p>
    </>
  );
}
