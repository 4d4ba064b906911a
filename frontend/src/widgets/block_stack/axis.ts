/** An event covers x from its index to the next. */

import type { HistoryDevice } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { valueTicks, type Tick } from "../../model/lines/axis";
import { upperBound } from "../../model/lines/polyline";

export type BlockAxisKind = "event" | "time";

const TICK_PX = 96;
const MS_PER_S = 1000;

export class BlockAxis {
  readonly low = 0;
  readonly high: number;
  readonly kind: BlockAxisKind;
  readonly #event: Float64Array;
  readonly #timeMs: Float64Array;

  constructor(device: HistoryDevice, wanted: BlockAxisKind) {
    const { firstMs, lastMs, numEvents, hasTimes, curve } = device;
    const timed = hasTimes && firstMs !== null && lastMs !== null && lastMs > firstMs;
    this.kind = wanted === "time" && timed ? "time" : "event";
    const first = firstMs ?? 0;
    const events = [...curve.event, Math.max(0, numEvents - 1)];
    const times = [...curve.timeMs, lastMs ?? NaN].map((ms) => ms - first);
    let latest = 0;
    this.#event = Float64Array.from(events);
    // Clocks may go back; an axis does not.
    this.#timeMs = Float64Array.from(times, (ms) => {
      latest = ms > latest ? ms : latest;
      return latest;
    });
    this.high = this.kind === "time" ? latest : Math.max(1, numEvents);
  }

  /** Moments before the first event are at the start. */
  xOf(moment: number): number {
    if (moment < 0) return this.low;
    if (this.kind === "event") return Math.min(moment + 0.5, this.high);
    return interpolated(this.#event, this.#timeMs, moment);
  }

  /** Nothing is drawn beyond the ends. */
  inside(x: number): number {
    return Math.min(Math.max(x, this.low), this.high);
  }

  /** Where the state after an event begins: spans start there. */
  xAfter(moment: number): number {
    if (this.kind === "event") return Math.min(Math.max(moment + 1, 0), this.high);
    return this.xOf(moment);
  }

  /** As exact as the curve of the whole history. */
  momentAt(x: number): number {
    if (this.kind === "event") {
      return Math.min(Math.max(Math.floor(x), 0), this.high - 1);
    }
    return Math.round(interpolated(this.#timeMs, this.#event, x));
  }

  /** Milliseconds since the first event; NaN without times. */
  msOf(moment: number): number {
    return interpolated(this.#event, this.#timeMs, Math.max(0, moment));
  }

  ticks(low: number, high: number, widthPx: number): readonly Tick[] {
    const most = Math.max(2, Math.floor(widthPx / TICK_PX));
    if (this.kind === "event") return valueTicks(low, high, most, "count");
    const seconds = valueTicks(low / MS_PER_S, high / MS_PER_S, most, "seconds");
    return seconds.map(({ value, text }) => ({ value: value * MS_PER_S, text }));
  }

  get name(): string {
    return this.kind === "event" ? "allocator events" : "time since the first event";
  }
}

export function momentText(moment: number): string {
  return moment < 0 ? "before the first event" : `event ${formatInteger(moment)}`;
}

export function atMoment(moment: number): string {
  return moment < 0 ? momentText(moment) : `at ${momentText(moment)}`;
}

/** Both ascending; constant beyond the ends. */
function interpolated(xs: Float64Array, ys: Float64Array, x: number): number {
  const low = Math.max(0, Math.min(upperBound(xs, x), xs.length - 1) - 1);
  const [x0 = 0, x1 = 0] = xs.subarray(low, low + 2);
  const [y0 = NaN, y1 = NaN] = ys.subarray(low, low + 2);
  if (x1 <= x0) return y0;
  return y0 + Math.min(Math.max((x - x0) / (x1 - x0), 0), 1) * (y1 - y0);
}
