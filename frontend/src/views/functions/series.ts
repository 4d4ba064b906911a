/** A statistic at both sides of each call as the lines of a chart. Pure. */

import type { FunctionCalls, FunctionStat, XKind } from "../../api/types.gen";
import type { ChartLine, XRange } from "../../widgets/line_chart/types";

/** Over steps where they ascend, else over the clock. */
export function callLines(
  calls: FunctionCalls,
  stat: FunctionStat,
): {
  readonly x: XKind;
  readonly lines: readonly ChartLine[];
  readonly extent: XRange;
} {
  const byStep = calls.step.every(
    (step, i) =>
      Number.isFinite(step) && (i === 0 || step > (calls.step[i - 1] ?? NaN)),
  );
  const times = Float64Array.from(calls.startMs, (start, i) =>
    Number.isFinite(start) ? start : (calls.endMs[i] ?? NaN),
  );
  const at = byStep ? calls.step : times;
  // Without any time a call has no place on the axis.
  const kept = Array.from(at.keys()).filter((i) => Number.isFinite(at[i] ?? NaN));
  const pick = (values: Float64Array): Float64Array =>
    Float64Array.from(kept, (i) => values[i] ?? NaN);
  const x = pick(at);
  const line = (id: "start" | "end", colour: number): ChartLine => {
    const y = pick(stat[id]);
    return { id, label: id, x, y, yLow: y, colour };
  };
  return {
    x: byStep ? "step" : "wall",
    lines: [line("start", 0), line("end", 1)],
    extent: { low: x[0] ?? 0, high: x[x.length - 1] ?? 1 },
  };
}
