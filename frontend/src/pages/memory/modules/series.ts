/** A module over windows as the lines of a chart. Pure. */

import type { ModuleOverWindows, ModuleWindow, XKind } from "../../../api/types.gen";
import type { ChartLine } from "../../../widgets/line_chart/types";

/**
 * Over steps where every window has one and they ascend, else over the clock: windows
 * taken by hand have no step, and a restarted training counts its steps again.
 */
export function windowLines(
  over: ModuleOverWindows,
  windows: readonly ModuleWindow[],
): { readonly x: XKind; readonly lines: readonly ChartLine[] } {
  const ascending = over.step.every(
    (step, i) => Number.isFinite(step) && (i === 0 || step > (over.step[i - 1] ?? NaN)),
  );
  const times = new Map(windows.map((one) => [one.id, one.timeMs]));
  const kept = Array.from(over.windows.keys()).filter(
    (i) => ascending || times.has(over.windows[i] ?? ""),
  );
  const x = Float64Array.from(kept, (i) =>
    ascending ? (over.step[i] ?? NaN) : (times.get(over.windows[i] ?? "") ?? NaN),
  );
  const line = (
    id: string,
    label: string,
    values: Float64Array,
    colour: number,
  ): ChartLine => {
    const y = Float64Array.from(kept, (i) => values[i] ?? NaN);
    return { id, label, x, y, yLow: y, colour };
  };
  const lines = [line("total", "Rank total", over.totalBytes, 0)];
  if (over.heldBytes.some((value) => Number.isFinite(value))) {
    lines.push(line("held", "This module", over.heldBytes, 1));
  }
  return { x: ascending ? "step" : "wall", lines };
}
