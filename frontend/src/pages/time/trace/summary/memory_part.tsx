/** Memory by category through one trace, as torch's analysis tells it. */

import { useMemo, useState } from "preact/hooks";
import type {
  Recorded,
  TraceReport,
  TraceReportMemory,
  TraceReportResponse,
} from "../../../../api/types.gen";
import { useOnce } from "../../../../api/use_once";
import { originOf } from "../../../../model/words/origin";
import { asSentence } from "../../../../model/words/source_label";
import { WindowStack, type WindowAnswer } from "../../../../widgets/stack/window_stack";
import type { XRange } from "../../../../widgets/plot/range";
import { Failure, Skeleton } from "../../../../widgets/state/state";
import { Choice } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";
import { reportTitle } from "./summary";

/** What recorders call it among their sources. */
const TIMELINE = "torch_profiler.memory_timeline";
const PLOT_PX = 220;
const COLUMNS = 1_200;

const NO_SPANS: WindowAnswer["spans"] = {
  modules: [],
  module: new Int32Array(),
  kinds: [],
  kind: new Uint8Array(),
  call: new Int32Array(),
  depth: new Int32Array(),
  x0: new Float64Array(),
  x1: new Float64Array(),
  numLeftOut: 0,
};

/** What the stack draws: its highest moment is marked. Pure. */
export function stackOf(memory: TraceReportMemory): WindowAnswer {
  return { ...memory, axis: "time", spans: NO_SPANS, marks: [] };
}

export function MemoryPart(props: {
  readonly view: ViewProps;
  readonly chosen: TraceReport;
  readonly answer: TraceReportResponse;
  /** What the recorder says of torch's profiler. */
  readonly absent: readonly Recorded[];
}) {
  const { view, chosen, answer } = props;
  return (
    <section class="trace-report-part" aria-label="Memory by category">
      {answer.memory === null ? (
        <>
          <div class="trace-report-bar">
            <h3>Memory by category</h3>
          </div>
          <p class="quiet">
            {missingWords(answer.missing, props.absent, chosen.problem)}
          </p>
        </>
      ) : (
        <Drawn view={view} chosen={chosen} devices={answer.memory.devices} />
      )}
    </section>
  );
}

/** Why there is none. Pure. */
export function missingWords(
  missing: readonly string[],
  absent: readonly Recorded[],
  problem: string,
): string {
  if (missing.length === 0) {
    const said = absent.find(({ source }) => source === TIMELINE);
    if (said !== undefined && said.reason !== "") {
      // Of several ranks one speaks there; the trace's own words stand above.
      const why = problem.includes("memory timeline") ? "" : asSentence(said.reason);
      return ["It was not recorded.", why, said.remedy].filter(Boolean).join(" ");
    }
    return "It was not recorded: torch_profiler.memory_timeline was off, or torch could not work it out; the recording says why.";
  }
  const options = missing.map((name) => `torch_profiler.${name}`).join(" and ");
  return `It was not recorded: the trace was made without ${options}. Set ${missing.length === 1 ? "it" : "them"} to true; torch's analysis then takes about 50 µs for each event, beside training.`;
}

function Drawn(props: {
  readonly view: ViewProps;
  readonly chosen: TraceReport;
  readonly devices: readonly string[];
}) {
  const { view, chosen, devices } = props;
  const [range, setRange] = useState<XRange | null>(null);
  const device = view.params.get("report_device") ?? null;
  const { data, error } = useOnce(view.client, "trace_report", {
    run: view.run.id,
    report: chosen.id,
    device,
    x0: range?.low ?? null,
    x1: range?.high ?? null,
    px: COLUMNS,
  });
  const memory = data?.memory ?? null;
  const answer = useMemo(() => (memory === null ? null : stackOf(memory)), [memory]);
  return (
    <>
      {devices.length > 1 && (
        <div class="trace-report-bar">
          <Choice
            label="Device"
            value={memory?.device ?? ""}
            onChange={(value) => {
              setRange(null);
              view.setParams({ report_device: value });
            }}
          >
            {devices.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </Choice>
        </div>
      )}
      {error !== null && data === null && <Failure failure={error} />}
      {answer === null && error === null && <Skeleton heightPx={PLOT_PX} />}
      {answer !== null && memory !== null && (
        <>
          <WindowStack
            label={`Memory by category, ${memory.device}`}
            answer={answer}
            began="the trace began"
            range={range}
            onRange={setRange}
            theme={view.theme}
            byteUnit={view.byteUnit}
            plotPx={PLOT_PX}
            origin={originOf(view.run)}
            about={{ trace: reportTitle(chosen), device: memory.device }}
          />
          <p class="quiet trace-report-note">
            What the trace saw: allocations while it ran and, of what was there before,
            the tensors it touched. A device may hold more.
          </p>
        </>
      )}
    </>
  );
}
