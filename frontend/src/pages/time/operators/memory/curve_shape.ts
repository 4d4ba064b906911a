/** The allocator's totals as steps in pixels, and what stands at a moment. Pure. */

import type { TraceMemoryCurve } from "../../../../api/types.gen";
import type { ByteUnit } from "../../../../base/bytes";
import { byteScale, threeDigits } from "../../../../base/bytes";
import { lowerBound } from "../../../../model/lines/polyline";
import { byteTicks, decimalStep } from "../../../../model/lines/ticks";
import type { XRange } from "../../../../widgets/line_chart/types";

export interface CurveFrame {
  readonly range: XRange;
  /** Bytes at the upper edge. */
  readonly top: number;
  readonly widthPx: number;
  readonly heightPx: number;
}

export function xOf({ range, widthPx }: CurveFrame, ms: number): number {
  return ((ms - range.low) / (range.high - range.low)) * widthPx;
}

export function msAt({ range, widthPx }: CurveFrame, px: number): number {
  const share = Math.min(1, Math.max(0, px / Math.max(1, widthPx)));
  return range.low + share * (range.high - range.low);
}

export function yOf({ top, heightPx }: CurveFrame, bytes: number): number {
  return heightPx - (bytes / top) * heightPx;
}

/**
 * Steps of one of the totals as an SVG path: each holds until the next one, the last to
 * the right edge. NaN leaves a gap.
 */
export function stepPath(
  frame: CurveFrame,
  times: Float64Array,
  values: Float64Array,
): string {
  const parts: string[] = [];
  let isDown = false;
  for (let i = 0; i < times.length; i += 1) {
    const value = values[i] ?? NaN;
    const x = xOf(frame, times[i] ?? 0).toFixed(1);
    if (isDown) parts.push(`H${x}`);
    if (!Number.isNaN(value)) {
      parts.push(`${isDown ? "V" : `M${x} `}${yOf(frame, value).toFixed(1)}`);
    }
    isDown = !Number.isNaN(value);
  }
  if (isDown) parts.push(`H${frame.widthPx.toFixed(1)}`);
  return parts.join("");
}

export interface CurvePeak {
  readonly ms: number;
  readonly bytes: number;
}

/** The highest value that lies in the range; null where none does. */
export function peakIn(
  range: XRange,
  times: Float64Array,
  values: Float64Array,
): CurvePeak | null {
  let best: CurvePeak | null = null;
  for (let i = 0; i < times.length; i += 1) {
    const [ms, bytes] = [times[i] ?? NaN, values[i] ?? NaN];
    // What held before the range began holds in it too.
    const ends = times[i + 1] ?? Infinity;
    if (ms > range.high || ends <= range.low || Number.isNaN(bytes)) continue;
    if (best === null || bytes > best.bytes) {
      best = { ms: Math.max(ms, range.low), bytes };
    }
  }
  return best;
}

/** The values that hold at a moment: row of the curve; -1: before its first event. */
export function rowAt(curve: TraceMemoryCurve, ms: number): number {
  const { timeMs } = curve;
  let row = lowerBound(timeMs, ms);
  while (row < timeMs.length && timeMs[row] === ms) row += 1;
  return row - 1;
}

/** A capacity is part of the picture where the totals come near it. */
const NEAR = 0.5;

export function curveTop(highest: number, capacity: number | null): number {
  const isNear = capacity !== null && highest >= NEAR * capacity;
  return Math.max(isNear ? Math.max(capacity, highest) : highest, 1) * 1.08;
}

export interface AxisTick {
  readonly px: number;
  readonly text: string;
}

export function byteAxis(frame: CurveFrame, unit: ByteUnit): readonly AxisTick[] {
  const { divisor, name } = byteScale(frame.top, unit);
  return byteTicks(0, frame.top, Math.max(2, frame.heightPx / 44)).values.map(
    (bytes) => ({
      px: yOf(frame, bytes),
      text: `${threeDigits(bytes / divisor)} ${name}`,
    }),
  );
}

/** As many digits as tell neighbouring ticks apart. */
export function timeAxis(frame: CurveFrame): readonly AxisTick[] {
  const { low, high } = frame.range;
  const step = decimalStep(low, high, Math.max(2, frame.widthPx / 110));
  const [divisor, unit] = step >= 1000 ? [1000, "s"] : [1, "ms"];
  const digits = Math.min(
    6,
    Math.max(0, -Math.floor(Math.log10(step / divisor) + 1e-9)),
  );
  const ticks: AxisTick[] = [];
  for (let i = Math.ceil(low / step - 1e-6); i * step <= high + step * 1e-6; i += 1) {
    const value = (i * step) / divisor;
    ticks.push({ px: xOf(frame, i * step), text: `${value.toFixed(digits)} ${unit}` });
  }
  return ticks;
}
