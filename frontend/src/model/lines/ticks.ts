/** Bytes step in powers of two, times in steps of the clock, all else in 1, 2, 5. */

const MAX_TICKS = 200;

function multiples(low: number, high: number, step: number): number[] {
  if (!(step > 0) || !(high >= low)) return [];
  const ticks: number[] = [];
  // Slack of a millionth of a step keeps ticks that rounding pushed over the edge.
  const first = Math.ceil(low / step - 1e-6) + 0; // + 0 turns -0 into 0
  for (let i = first; i * step <= high + step * 1e-6; i += 1) {
    if (ticks.length >= MAX_TICKS) break;
    ticks.push(i * step);
  }
  return ticks;
}

/** The least power of two with at most `most` steps. */
function byteStep(low: number, high: number, most: number): number {
  const wanted = Math.max((high - low) / Math.max(1, most), 1);
  return 2 ** Math.ceil(Math.log2(wanted) - 1e-9);
}

/** The least of 1, 2, 5 times a power of ten with at most `most` steps. */
function decimalStep(low: number, high: number, most: number): number {
  const wanted = (high - low) / Math.max(1, most);
  if (!(wanted > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const rest = wanted / power;
  const factor = [1, 2, 5].find((f) => rest <= f * (1 + 1e-9)) ?? 10;
  return factor * power;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS: readonly number[] = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((n) => n * DAY),
];

/** In milliseconds. */
export function timeStep(low: number, high: number, most: number): number {
  const wanted = (high - low) / Math.max(1, most);
  return TIME_STEPS.find((step) => step >= wanted) ?? decimalStep(low, high, most);
}

export interface Ticks {
  readonly step: number;
  readonly values: readonly number[];
}

type StepOf = (low: number, high: number, most: number) => number;

const ticksOf =
  (stepOf: StepOf): ((low: number, high: number, most: number) => Ticks) =>
  (low, high, most) => {
    const step = stepOf(low, high, most);
    return { step, values: multiples(low, high, step) };
  };

export const byteTicks = ticksOf(byteStep);
export const decimalTicks = ticksOf(decimalStep);
/** Whole numbers only: there is no step 2.5. */
export const wholeTicks = ticksOf((...range) => Math.max(1, decimalStep(...range)));

/** In ms. `offsetMs`: local time less UTC, so that midnight is a tick; 0 where relative. */
export function timeTicks(
  low: number,
  high: number,
  most: number,
  offsetMs = 0,
): Ticks {
  const step = timeStep(low, high, most);
  const local = multiples(low + offsetMs, high + offsetMs, step);
  return { step, values: local.map((value) => value - offsetMs) };
}

/** Powers of `base`, thinned to at most `most`. */
export function logTicks(
  low: number,
  high: number,
  most: number,
  base: 2 | 10,
): readonly number[] {
  if (!(low > 0) || !(high > low)) return [];
  const log = (value: number): number => Math.log(value) / Math.log(base);
  const first = Math.ceil(log(low) - 1e-9);
  const last = Math.floor(log(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, most)));
  const values: number[] = [];
  for (let power = first; power <= last; power += 1) {
    if (power % every === 0) values.push(base ** power);
  }
  return values;
}
