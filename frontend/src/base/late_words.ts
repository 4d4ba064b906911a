/**
 * Words of the URL that a gesture changes: written once it rests, or just before anything
 * else goes there, so that a page which is left at once is found again as it was. What a
 * link says after them wins.
 */

/** Browsers throttle pages that rewrite their address too often. */
const ADDRESS_MS = 350;

const waiting = new Set<LateWords>();

export class LateWords {
  #timer: ReturnType<typeof setTimeout> | null = null;
  #write: (() => void) | null = null;

  constructor(private readonly pauseMs = ADDRESS_MS) {}

  /** Takes the place of what was on its way. */
  put(write: () => void): void {
    this.drop();
    this.#write = write;
    waiting.add(this);
    this.#timer = setTimeout(() => this.writeNow(), this.pauseMs);
  }

  /** What was on its way is not written any more. */
  drop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#write = null;
    waiting.delete(this);
  }

  writeNow(): void {
    const write = this.#write;
    // First, because writing asks for all that is on its way.
    this.drop();
    write?.();
  }
}

/** Writes whatever is on its way to the address. */
export function writeLateWords(): void {
  for (const words of [...waiting]) words.writeNow();
}
