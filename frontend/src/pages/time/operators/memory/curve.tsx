import { useMemo } from "preact/hooks";
import type { Mark, OperatorMemoryResponse } from "../../../../api/types.gen";
import { formatSeconds } from "../../../../base/durations";
import { X_AXES } from "../../../../model/lines/axis";
import { LineChart } from "../../../../widgets/line_chart/line_chart";
import type { ChartLine } from "../../../../widgets/line_chart/types";
import type { XRange } from "../../../../widgets/plot/range";
import { TextButton } from "../../../shared/controls/choices";
import { columnOf } from "../../../shared/table/columns";
import type { RangeState } from "../../../shared/range/use_range";
import { lookOf, type ViewProps } from "../../../shared/view_props";

const HEIGHT_PX = 260;

export function Curve(props: {
  readonly data: OperatorMemoryResponse;
  readonly view: ViewProps;
  readonly extent: XRange;
  readonly range: RangeState;
  readonly row: number | null;
}) {
  const { data, view, extent, row } = props;
  const { shown, setRange } = props.range;
  const { curve, allocations } = data;
  const lines = useMemo(
    () =>
      [
        lineOf("Allocated", curve.timeMs, curve.allocatedBytes, 0),
        lineOf("Reserved", curve.timeMs, curve.reservedBytes, 1),
        // The host's allocator reserves nothing: no line, rather than zeros.
      ].filter(({ y }) => y.some((bytes) => bytes > 0)),
    [curve],
  );
  const marks = useMemo(() => {
    if (row === null) return [];
    const times = ["allocated_ms", "released_ms"].flatMap(
      (key) => columnOf(allocations, key) ?? [],
    );
    return times.flatMap(({ title, numbers }): readonly Mark[] => {
      const x = numbers[row] ?? NaN;
      return Number.isNaN(x) ? [] : [{ kind: "user", x, rank: null, label: title }];
    });
  }, [allocations, row]);
  const { low, high } = extent;
  const axis = useMemo(
    () => ({
      ...X_AXES.relative,
      name: "time since the trace began",
      // A trace may be shorter than the closest zoom of a run.
      least: Math.min(X_AXES.relative.least, (high - low) / 50),
    }),
    [low, high],
  );
  const capacity = data.devices.find(({ key }) => key === data.device)?.capacityBytes;
  return (
    <section aria-label="Memory over time">
      <p>
        {shown === null ? (
          `${formatSeconds(data.durationMs / 1e3)} of trace. Drag with Shift, or scroll, to choose a part.`
        ) : (
          <>
            {formatSeconds(shown.low / 1e3)} to {formatSeconds(shown.high / 1e3)}: the
            tables are of this part.{" "}
            <TextButton title="Esc or F" press={() => setRange(null)}>
              Show the whole trace
            </TextButton>
          </>
        )}
      </p>
      {curve.timeMs.length === 0 ? (
        <p class="quiet">
          The trace has no totals of allocated bytes, so there is no curve: older
          versions of torch did not write them.
        </p>
      ) : (
        <LineChart
          label="Memory over time"
          unit="bytes"
          x={axis}
          lines={lines}
          marks={marks}
          limit={
            typeof capacity === "number" ? { value: capacity, label: "capacity" } : null
          }
          extent={extent}
          range={shown}
          onRange={setRange}
          {...lookOf(view)}
          heightPx={HEIGHT_PX}
          page={{ view, group: "Operators" }}
        />
      )}
    </section>
  );
}

function lineOf(
  label: string,
  x: Float64Array,
  y: Float64Array,
  colour: number,
): ChartLine {
  return { id: label, label, x, y, yLow: y, colour };
}
