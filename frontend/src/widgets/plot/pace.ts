/**
 * Keeps drawings apart: one that comes too soon after the last waits, and of those that
 * wait only the newest is drawn. A chart that follows another one's drag is redrawn less
 * often than that one, which leaves the frame to where the pointer is.
 */
export class Pace {
  #last = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #newest: () => void = () => undefined;

  constructor(private readonly pauseMs: number) {}

  /** Draws now where the pause is over or `urgent`, otherwise once it is. */
  ask(draw: () => void, urgent: boolean): void {
    const restMs = this.#last + this.pauseMs - performance.now();
    this.#newest = draw;
    if (urgent || restMs <= 0) {
      this.stop();
      this.#draw();
    } else this.#timer ??= setTimeout(() => this.#draw(), restMs);
  }

  /** Forgets what waits. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #draw(): void {
    this.#timer = null;
    this.#last = performance.now();
    this.#newest();
  }
}
