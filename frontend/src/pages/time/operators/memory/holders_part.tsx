/** Who holds the memory at the peak: by category, module and phase. */

import { useMemo, useState } from "preact/hooks";
import type {
  OperatorMemoryResponse,
  TraceMemoryPeak,
} from "../../../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
} from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import { ROW_PX, RowTable } from "../../../../widgets/row_table/row_table";
import { Segmented } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";
import {
  HOLDERS_BY,
  holderColumns,
  holdersBy,
  holdersTable,
  peakParts,
  wholeBytes,
  type HoldersBy,
} from "./holders";
import { MemoryHead } from "./head";

const MOST_PX = 264;
const HEAD_PX = 32;

const BY_WORDS: Readonly<Record<HoldersBy, readonly [string, string]>> = {
  category: ["Category", "What the memory is for"],
  module: ["Module", "In which module it was allocated"],
  phase: ["Phase", "In which part of the step it was allocated"],
  all: ["All three", "Each category, module and phase there is"],
};

export function AtPeak({
  data,
  view,
}: {
  readonly data: OperatorMemoryResponse;
  readonly view: ViewProps;
}) {
  const { peak } = data;
  if (peak === null || wholeBytes(peak) <= 0) {
    return (
      <p class="quiet">
        {data.hasAddresses
          ? "Nothing was allocated in this part, so nothing holds its peak."
          : "The trace has no addresses, so who holds the peak is not known."}
      </p>
    );
  }
  return <Peak data={data} peak={peak} view={view} />;
}

function Peak({
  data,
  peak,
  view,
}: {
  readonly data: OperatorMemoryResponse;
  readonly peak: TraceMemoryPeak;
  readonly view: ViewProps;
}) {
  const { theme, byteUnit } = view;
  const word = view.params.get("peak_by");
  const by = HOLDERS_BY.find((one) => one === word) ?? "category";
  const [chosen, setChosen] = useState<number | null>(null);
  const holders = useMemo(() => holdersBy(peak, by), [peak, by]);
  const columns = useMemo(
    () => holderColumns(data, peak, holders, by, theme, byteUnit),
    [data, peak, holders, by, theme, byteUnit],
  );
  const whole = wholeBytes(peak);
  const sent = peak.holders.numBytes.length;
  return (
    <section aria-label="Memory at the peak">
      <MemoryHead
        data={data}
        name="holders of the peak"
        table={() => holdersTable(data, peak)}
      >
        At the peak, {formatSeconds(peak.timeMs / 1e3)} after the trace began,{" "}
        <b title={formatBytesExact(whole)}>{formatBytes(whole, byteUnit)}</b> were
        allocated
        <span
          title={`${formatBytesExact(peak.unknownBytes)}: no event explains them, or nothing says what they are for`}
        >
          ; nothing says what {formatShare(peak.unknownBytes, whole)} of them are for
        </span>
        .
      </MemoryHead>
      <PeakBar data={data} peak={peak} view={view} whole={whole} />
      <div class="operator-peak-by">
        <Segmented
          label="What holders of the peak are grouped by"
          title="By"
          options={HOLDERS_BY}
          chosen={by}
          words={(one) => BY_WORDS[one]}
          onChoose={(one) => {
            setChosen(null);
            view.setParams({ peak_by: one === "category" ? null : one }, "push");
          }}
        />
        {sent < peak.numHolders && (
          <span class="quiet">
            of the {formatInteger(sent)} largest of {formatInteger(peak.numHolders)}{" "}
            places
          </span>
        )}
      </div>
      <RowTable
        label="Holders of the peak"
        columns={columns}
        rows={holders.map((_, row) => row)}
        selected={chosen}
        onSelect={(row) => setChosen(row === chosen ? null : row)}
        sort={null}
        empty="The trace shows no allocation that was live then."
        heightPx={Math.min(MOST_PX, HEAD_PX + Math.max(1, holders.length) * ROW_PX)}
      />
    </section>
  );
}

function PeakBar({
  data,
  peak,
  view,
  whole,
}: {
  readonly data: OperatorMemoryResponse;
  readonly peak: TraceMemoryPeak;
  readonly view: ViewProps;
  readonly whole: number;
}) {
  const { theme, byteUnit } = view;
  const parts = useMemo(() => peakParts(data, peak, theme), [data, peak, theme]);
  const words = (label: string, bytes: number): string =>
    `${label} ${formatBytes(bytes, byteUnit)}, ${formatShare(bytes, whole)}`;
  const why = (category: number): string =>
    category < 0
      ? "\nThe allocator’s total holds it, and no event explains it: it was allocated before the trace began, and kept."
      : "";
  return (
    <>
      <div
        class="operator-peak"
        role="img"
        aria-label={parts.map((one) => words(one.label, one.numBytes)).join("; ")}
      >
        {parts.map((one) => (
          <span
            key={one.category}
            class={one.category < 0 ? "is-unseen" : ""}
            title={`${words(one.label, one.numBytes)}${why(one.category)}`}
            style={{
              width: `${(100 * one.numBytes) / whole}%`,
              backgroundColor: one.colour,
            }}
          />
        ))}
      </div>
      <ul class="operator-peak-legend">
        {parts.map((one) => (
          <li
            key={one.category}
            title={`${formatBytesExact(one.numBytes)}${why(one.category)}`}
          >
            <i
              class={one.category < 0 ? "is-unseen" : ""}
              style={{ backgroundColor: one.colour }}
            />
            {one.label} <b>{formatBytes(one.numBytes, byteUnit)}</b>
          </li>
        ))}
      </ul>
    </>
  );
}
