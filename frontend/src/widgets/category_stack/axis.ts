/** The x axis of one window: time since it began, or memory events. Pure. */

import type { ModuleTimelineResponse } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import { valueTicks, type Tick } from "../../model/lines/axis";

export type StackAxis = ModuleTimelineResponse["axis"];

export const WINDOW_BEGAN = "tracking began";

/** `began`: since when x counts. */
export function axisLabel(axis: StackAxis, began: string): string {
  const what = axis === "time" ? "time" : "allocations and frees";
  return `${what} since ${began}`;
}

const US_PER_S = 1e6;

export function axisTicks(
  low: number,
  high: number,
  widthPx: number,
  axis: StackAxis,
): readonly Tick[] {
  const most = Math.max(2, Math.floor(widthPx / 96));
  if (axis === "event") return valueTicks(low, high, most, "count");
  const ticks = valueTicks(low / US_PER_S, high / US_PER_S, most, "seconds");
  return ticks.map(({ value, text }) => ({ value: value * US_PER_S, text }));
}

/** x exactly, in words. */
export function axisText(x: number, axis: StackAxis, began: string): string {
  if (axis === "event") return `event ${formatInteger(Math.round(x))}`;
  return `${formatSeconds(x / US_PER_S)} after ${began}`;
}
