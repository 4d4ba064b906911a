/** Memory by category through one trace, as torch's analysis tells it. */

import { useMemo, useState } from "preact/hooks";
import type {
  TraceReport,
  TraceReportMemory,
  TraceReportResponse,
} from "../../../../api/types.gen";
import { useOnce } from "../../../../api/use_once";
import { originOf } from "../../../../model/words/origin";
import { WindowStack, type WindowAnswer } from "../../../../widgets/stack/window_stack";
import type { XRange } from "../../../../widgets/plot/range";
import { Failure, Skeleton } from "../../../../widgets/state/state";
import { Choice } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";

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
  readonly answer: TraceReportResponse;
}) {
  const { view, answer } = props;
  return (
    <section aria-label="Memory by category">
      {answer.memory === null ? (
        <>
          <h3>Memory by category</h3>
          <p class="quiet">{answer.missing}</p>
        </>
      ) : (
        <Drawn view={view} chosen={answer.report} devices={answer.memory.devices} />
      )}
    </section>
  );
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
        <div class="row">
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
            about={{ trace: chosen.title, device: memory.device }}
          />
          <p class="quiet small">
            What the trace saw: allocations while it ran and, of what was there before,
            the tensors it touched. A device may hold more.
          </p>
        </>
      )}
    </>
  );
}
