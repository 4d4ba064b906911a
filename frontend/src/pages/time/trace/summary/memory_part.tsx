import type { TraceReportResponse } from "../../../../api/types.gen";
import type { XRange } from "../../../../widgets/plot/range";
import { WindowStack } from "../../../../widgets/stack/window_stack";
import { Choice } from "../../../shared/controls/choices";
import { lookOf, type ViewProps } from "../../../shared/view_props";

const PLOT_PX = 220;

export function MemoryPart(props: {
  readonly view: ViewProps;
  readonly answer: TraceReportResponse;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}) {
  const { view, range, setRange } = props;
  const { report, missing, memory } = props.answer;
  if (memory === null) {
    return (
      <section aria-label="Memory by category">
        <h3>Memory by category</h3>
        <p class="quiet">{missing}</p>
      </section>
    );
  }
  const { device, devices } = memory;
  return (
    <section aria-label="Memory by category">
      {devices.length > 1 && (
        <div class="row">
          <Choice
            label="Device"
            value={device}
            of={devices.map((one) => [one, one])}
            onChange={(value) => {
              setRange(null);
              view.setParams({ report_device: value });
            }}
          />
        </div>
      )}
      <WindowStack
        {...lookOf(view)}
        {...{ range, onRange: setRange }}
        label={`Memory by category, ${device}`}
        answer={memory}
        began="the trace began"
        plotPx={PLOT_PX}
        about={{ trace: report.title, device }}
      />
      <p class="quiet small">
        Allocations during the trace, and earlier tensors that it used. More device
        memory may be allocated.
      </p>
    </section>
  );
}
