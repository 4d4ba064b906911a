/** Operators by the memory they allocated, when, and for how long. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import type {
  OperatorCharge,
  OperatorMemoryResponse,
  TraceDevice,
} from "../../../../api/types.gen";
import { formatBytes } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import { commandsOf } from "../../../../base/commands";
import { useCommands } from "../../../../base/use_commands";
import { routeSort } from "../../../../model/shown_rows";
import { Nothing } from "../../../../widgets/state/state";
import { Choice, Segmented } from "../../../shared/controls/choices";
import { rangeCommands } from "../../../shared/range/commands";
import { useProfiledRows } from "../../profiled/rows";
import { SearchBox } from "../../../shared/controls/search_box";
import { TraceFrame } from "../../profiled/trace_choice";
import { useRange, type RangeState } from "../../../shared/range/use_range";
import type { ViewProps } from "../../../shared/view_props";
import { curveTable, BY_MEMORY } from "./columns";
import { MemoryCurve } from "./curve";
import { MemoryHead } from "./head";
import { AtPeak } from "./holders_part";
import { Allocations, ByOperator } from "./tables";

const CURVE_PX = 1600;
const T_WORDS = { low: "t0", high: "t1" } as const;

const CHARGES: readonly OperatorCharge[] = ["allocating", "freeing"];
const CHARGE_WORDS: Readonly<Record<OperatorCharge, readonly [string, string]>> = {
  allocating: [
    "What allocated",
    "A release counts for the operator that had allocated the memory",
  ],
  freeing: [
    "What frees",
    "A release counts for the operator in which it happens: torch-tb-profiler's way",
  ],
};

export function MemoryTab({
  view,
  tabs,
}: {
  readonly view: ViewProps;
  readonly tabs: ComponentChildren;
}) {
  const { client, run, ranks, params, setParams } = view;
  const charge: OperatorCharge =
    params.get("charge") === "freeing" ? "freeing" : "allocating";
  const text = params.get("text") ?? "";
  const range = useRange(params, setParams, T_WORDS);
  const live = useProfiledRows(
    client,
    "operator_memory",
    {
      run: run.id,
      rank: ranks.rank,
      source: params.get("source") ?? null,
      device: params.get("device") ?? null,
      charge,
      t0: range.settled?.low ?? null,
      t1: range.settled?.high ?? null,
      px: CURVE_PX,
      text: text === "" ? null : text,
    },
    routeSort(params.get("sort"), BY_MEMORY),
    view.pollMs,
  );
  return (
    <TraceFrame
      live={live}
      what="memory of operators"
      setParams={(changes, how) => {
        // Devices and times are of one trace alone.
        range.setRange(null);
        setParams({ ...changes, device: null, t0: null, t1: null }, how);
      }}
    >
      {(data, chooser) =>
        data.devices.length === 0 ? (
          <>
            <div class="trace-bar">
              {tabs}
              {chooser}
            </div>
            <NoMemory />
          </>
        ) : (
          <>
            <div class="trace-bar">
              {tabs}
              {chooser}
              <DeviceChoice data={data} view={view} />
              <Segmented
                label="Whom a release is charged to"
                title="Charged to"
                options={CHARGES}
                chosen={charge}
                words={(one) => CHARGE_WORDS[one]}
                disabled={() => !data.hasAddresses}
                onChoose={(one) =>
                  setParams({ charge: one === "allocating" ? null : one }, "push")
                }
              />
              <SearchBox
                label="Search operators"
                text={text}
                onText={(value) => setParams({ text: value === "" ? null : value })}
                commands={view.commands}
              />
            </div>
            {data.device === null ? (
              <p class="quiet">This trace has no such device: choose another one.</p>
            ) : (
              <OfDevice data={data} view={view} range={range} text={text} />
            )}
          </>
        )
      }
    </TraceFrame>
  );
}

function NoMemory() {
  return (
    <Nothing title="No memory events in this trace">
      <p>
        It was recorded without them. Record them with profile_memory=True of
        torch.profiler; what each operator allocates and frees is then in the trace.
      </p>
    </Nothing>
  );
}

function deviceWords({ kind, index, peakAllocatedBytes }: TraceDevice): string {
  const name = index < 0 ? kind : `${kind} ${index}`;
  return peakAllocatedBytes === null
    ? name
    : `${name}, peak ${formatBytes(peakAllocatedBytes)}`;
}

function DeviceChoice({
  data,
  view,
}: {
  readonly data: OperatorMemoryResponse;
  readonly view: ViewProps;
}) {
  return (
    <Choice
      label="Device"
      value={data.device ?? ""}
      onChange={(device) => view.setParams({ device }, "push")}
    >
      {data.device === null && <option value="">–</option>}
      {data.devices.map((one) => (
        <option key={one.key} value={one.key}>
          {deviceWords(one)}
        </option>
      ))}
    </Choice>
  );
}

function OfDevice(props: {
  readonly data: OperatorMemoryResponse;
  readonly view: ViewProps;
  readonly range: RangeState;
  readonly text: string;
}) {
  const { data, view, range } = props;
  const [pointed, setPointed] = useState<number | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const extent = { low: 0, high: Math.max(data.durationMs, 1e-6) };
  const shown = range.shown ?? extent;
  useLayoutEffect(() => {
    // Rows are of this answer alone; whoever sees the new ones may point at them.
    setPointed(null);
    setChosen(null);
  }, [data.allocations]);
  useCommands(view.commands, () => [
    ...rangeCommands("Operators", {
      extent,
      range: range.shown,
      setRange: range.setRange,
    }),
    ...commandsOf("operators", "Operators", [
      ["clear", "Show the whole trace", () => range.setRange(null), "Escape"],
    ]),
  ]);
  const marked = pointed ?? chosen;
  const device = data.devices.find(({ key }) => key === data.device);
  return (
    <>
      <section aria-label="Memory over time">
        <MemoryHead data={data} name="operator memory curve" table={curveTable}>
          {range.shown === null ? (
            `${formatSeconds(data.durationMs / 1e3)} of trace`
          ) : (
            <>
              {formatSeconds(shown.low / 1e3)} to {formatSeconds(shown.high / 1e3)}: the
              tables are of this part.{" "}
              <button
                type="button"
                class="text-button"
                title="Esc or F"
                onClick={() => range.setRange(null)}
              >
                Show the whole trace
              </button>
            </>
          )}
        </MemoryHead>
        {data.curve.timeMs.length === 0 ? (
          <p class="quiet">
            The trace does not say how much was allocated in all, so there is no curve:
            older versions of torch did not write it.
          </p>
        ) : (
          <MemoryCurve
            data={data}
            shown={shown}
            capacityBytes={device?.capacityBytes ?? null}
            mark={
              marked === null
                ? null
                : {
                    fromMs: data.allocations.allocatedMs[marked] ?? NaN,
                    toMs: data.allocations.releasedMs[marked] ?? NaN,
                  }
            }
            onRange={range.setRange}
            theme={view.theme}
            byteUnit={view.byteUnit}
          />
        )}
      </section>
      <AtPeak data={data} view={view} />
      <ByOperator data={data} view={view} />
      <Allocations
        data={data}
        view={view}
        text={props.text}
        chosen={chosen}
        onChoose={(row) => setChosen(row === chosen ? null : row)}
        onPoint={setPointed}
      />
    </>
  );
}
