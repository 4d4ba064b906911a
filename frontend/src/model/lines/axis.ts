import type { Unit, XKind } from "../../api/types.gen";
import {
  byteScale,
  formatDecimals,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import { formatClock, formatInstant, formatSeconds } from "../../base/durations";
import { isBytes, UNIT_WORDS } from "../words/quantity";
import { byteTicks, decimalTicks, logTicks, timeTicks, wholeTicks } from "./ticks";

export interface Tick {
  readonly value: number;
  readonly text: string;
}

const tick = (text: (value: number) => string) => (value: number) => ({
  value,
  text: text(value),
});

/** Tell neighbours `step` apart; at most 6. */
function decimalsFor(step: number): number {
  for (let decimals = 0; decimals < 6; decimals += 1) {
    const scaled = step * 10 ** decimals;
    if (Math.abs(scaled - Math.round(scaled)) < 1e-6 * scaled) return decimals;
  }
  return 6;
}

function plain(value: number, step: number): string {
  return formatDecimals(value, decimalsFor(step));
}

function valueTickText(
  value: number,
  step: number,
  largest: number,
  unit: Unit,
  byteUnit: ByteUnit,
): string {
  if (isBytes(unit)) {
    if (value === 0) return "0";
    const { divisor, name } = byteScale(largest, byteUnit);
    return `${plain(value / divisor, step / divisor)} ${name}${UNIT_WORDS[unit][0]}`;
  }
  if (unit === "seconds") {
    if (value === 0) return "0";
    if (largest < 1e-3) return `${plain(value * 1e6, step * 1e6)} µs`;
    if (largest < 1) return `${plain(value * 1e3, step * 1e3)} ms`;
    return largest < 120 ? `${plain(value, step)} s` : formatSeconds(value);
  }
  return `${plain(value, step)}${UNIT_WORDS[unit][0]}`;
}

/** Below this ratio of its ends a logarithmic axis has too few powers to mark. */
const FEW_POWERS = 16;

/** On a long logarithmic axis every tick has its own unit. */
export function valueTicks(
  low: number,
  high: number,
  most: number,
  unit: Unit,
  byteUnit: ByteUnit = "auto",
  logScale = false,
): readonly Tick[] {
  if (logScale && high / low >= FEW_POWERS) {
    return logTicks(low, high, most, isBytes(unit) ? 2 : 10).map(
      tick((value) => valueTickText(value, value, value, unit, byteUnit)),
    );
  }
  const { step, values } = isBytes(unit)
    ? byteTicks(low, high, most)
    : unit === "count"
      ? wholeTicks(low, high, most)
      : decimalTicks(low, high, most);
  const largest = Math.max(Math.abs(low), Math.abs(high));
  return values.map(
    tick((value) => valueTickText(value, step, largest, unit, byteUnit)),
  );
}

function localOffsetMs(timeMs: number): number {
  return -new Date(timeMs).getTimezoneOffset() * 60_000;
}

const DAY_MS = 86_400_000;

function wallText(value: number, step: number): string {
  const instant = formatInstant(value);
  if (step >= DAY_MS) return instant.slice(5, 10);
  if (step < 1000) return `${formatClock(value)}.${msOf(value)}`;
  const clock = step < 60_000 ? formatClock(value) : formatClock(value).slice(0, 5);
  return clock === "00:00" ? instant.slice(5, 10) : clock;
}

function msOf(value: number): string {
  return (Math.round(value) % 1000).toString().padStart(3, "0");
}

function relativeText(valueMs: number, stepMs: number): string {
  if (valueMs === 0) return "0";
  if (stepMs >= 60_000 || valueMs >= 3_600_000) return formatSeconds(valueMs / 1000);
  if (stepMs >= 1000 && valueMs >= 60_000) return formatSeconds(valueMs / 1000);
  if (valueMs < 1000) return `${plain(valueMs, stepMs)} ms`;
  return `${plain(valueMs / 1000, stepMs / 1000)} s`;
}

export interface XAxis {
  readonly name: string;
  /** Its column in files. */
  readonly column: string;
  /** The smallest range to zoom into. */
  readonly least: number;
  readonly ticks: (low: number, high: number, most: number) => readonly Tick[];
  /** Exact, e.g. "step 1,204". */
  readonly text: (x: number) => string;
}

/** The same objects each time, so that what is drawn stays. */
export const X_AXES: Readonly<Record<XKind, XAxis>> = {
  step: {
    name: "step",
    column: "step",
    least: 2,
    ticks: (...range) => wholeTicks(...range).values.map(tick(formatInteger)),
    text: (x) => `step ${formatInteger(Math.round(x))}`,
  },
  relative: {
    name: "time since the attempt began",
    column: "relative_ms",
    least: 20,
    ticks: (...range) => {
      const { step, values } = timeTicks(...range);
      return values.map(tick((value) => relativeText(value, step)));
    },
    text: (x) => `${formatSeconds(x / 1000)} after start`,
  },
  wall: {
    name: "local time",
    column: "wall_ms",
    least: 20,
    ticks: (low, high, most) => {
      const { step, values } = timeTicks(low, high, most, localOffsetMs(low));
      return values.map(tick((value) => wallText(value, step)));
    },
    text: (x) => `${formatInstant(x)}.${msOf(x)}`,
  },
};
