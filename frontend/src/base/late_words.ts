/**
 * Words of the URL that a gesture changes: written once it rests, or just before anything
 * else goes there, so that a page which is left at once is found again as it was. What a
 * link says after them wins.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

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

type Words = Readonly<Record<string, string | null>>;

/** State that moves with a gesture and stands in the URL once the gesture rests. */
interface LateAddress {
  readonly params: ReadonlyMap<string, string>;
  readonly setParams: (words: Words) => void;
  /** The words of the URL that say the state. */
  readonly names: readonly string[];
  /** A link or the back button says another state. */
  readonly follow: () => void;
  /** Whether what the URL says at first is followed too. */
  readonly atFirst?: boolean;
  /** While false nothing is followed. */
  readonly ready?: boolean;
  readonly pauseMs?: number;
}

/** Writes, with a delay, the words that the function passed then makes. */
export function useLateWords(of: LateAddress): (words: () => Words) => void {
  const { names, atFirst = false, ready = true } = of;
  const newest = useRef(of);
  newest.current = of;
  const late = useMemo(() => new LateWords(of.pauseMs), []);
  const address = names.map((name) => of.params.get(name) ?? "").join(" ");
  const written = useRef(atFirst ? null : address);
  const [numWritten, setNumWritten] = useState(0);
  useEffect(() => {
    if (!ready || address === written.current) return;
    written.current = address;
    late.drop();
    newest.current.follow();
    // Counted: a link may lead back to what stood there before anything was written.
  }, [ready, address, numWritten]);
  useEffect(() => () => late.drop(), []);
  return (make) =>
    late.put(() => {
      const words = make();
      const next = names.map((name) => words[name] ?? "").join(" ");
      if (next === written.current) return;
      written.current = next;
      setNumWritten((num) => num + 1);
      newest.current.setParams(words);
    });
}
