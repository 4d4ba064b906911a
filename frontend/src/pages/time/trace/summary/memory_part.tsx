import { useState } from "preact/hooks";
import type { TraceReportResponse } from "../../../../api/types.gen";
import { useOnce } from "../../../../api/use_once";
import { originOf } from "../../../../model/words/origin";
import { WindowStack } from "../../../../widgets/stack/window_stack";
import type { XRange } from "../../../../widgets/plot/range";
import { Failure, Skeleton } from "../../../../widgets/state/state";
import { Choice, Options } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";

const PLOT_PX = 220;
const COLUMNS = 1_200;

export function MemoryPart(props: {
  readonly view: ViewProps;
  readonly answer: TraceReportResponse;
}) {
  const { view, answer } = props;
  const { report, missing } = answer;
  const [range, setRange] = useState<XRange | null>(null);
  const query = {
    run: view.run.id,
    report: report.id,
    device: view.params.get("report_device") ?? null,
    x0: range?.low ?? null,
    x1: range?.high ?? null,
    px: COLUMNS,
  };
  const known = answer.memory;
  const { data, error } = useOnce(view.client, "trace_report", known && query);
  const memory = data?.memory;
  return (
    <section aria-label="Memory by category">
      {known === null && (
        <>
          <h3>Memory by category</h3>
          <p class="quiet">{missing}</p>
        </>
      )}
      {known !== null && known.devices.length > 1 && (
        <div class="row">
          <Choice
            label="Device"
            value={memory?.device ?? ""}
            onChange={(value) => {
              setRange(null);
              view.setParams({ report_device: value });
            }}
          >
            <Options of={known.devices.map((one) => [one, one])} />
          </Choice>
        </div>
      )}
      {error !== null && data === null && <Failure failure={error} />}
      {known !== null && data === null && error === null && (
        <Skeleton heightPx={PLOT_PX} />
      )}
      {memory && (
        <>
          <WindowStack
            label={`Memory by category, ${memory.device}`}
            answer={memory}
            began="the trace began"
            range={range}
            onRange={setRange}
            theme={view.theme}
            byteUnit={view.byteUnit}
            plotPx={PLOT_PX}
            origin={originOf(view.run)}
            about={{ trace: report.title, device: memory.device }}
          />
          <p class="quiet small">
            Allocations during the trace, and earlier tensors that it used. More device
            memory may be allocated.
          </p>
        </>
      )}
    </section>
  );
}
