/**
 * Keeps drawings apart: one that comes too soon after the last waits, and of those that
 * wait only the newest is drawn. A chart that follows another one's drag is redrawn less
 * often than that one, which leaves the frame to where the pointer is.
 */

export interface PaceTimers {
  readonly now: () => number;
  readonly start: (callback: () => void, delayMs: number) => number;
  readonly stop: (timer: number) => void;
}

const pageTimers: PaceTimers = {
  now: () => performance.now(),
  start: (callback, delayMs) => window.setTimeout(callback, delayMs),
  stop: (timer) => window.clearTimeout(timer),
};

export class Pace {
  #last = Number.NEGATIVE_INFINITY;
  #timer: number | null = null;
  #waiting: (() => void) | null = null;

  constructor(
    private readonly pauseMs: number,
    private readonly timers: PaceTimers = pageTimers,
  ) {}

  /** Draws now where the pause is over or `urgent`, otherwise once it is. */
  ask(draw: () => void, urgent: boolean): void {
    const restMs = this.#last + this.pauseMs - this.timers.now();
    if (urgent || restMs <= 0) {
      this.stop();
      this.#last = this.timers.now();
      draw();
      return;
    }
    this.#waiting = draw;
    this.#timer ??= this.timers.start(() => {
      this.#timer = null;
      this.#last = this.timers.now();
      const newest = this.#waiting;
      this.#waiting = null;
      newest?.();
    }, restMs);
  }

  /** Forgets what waits. */
  stop(): void {
    if (this.#timer !== null) this.timers.stop(this.#timer);
    this.#timer = null;
    this.#waiting = null;
  }
}
