/**
 * Parameters that a gesture changes: written once it rests, or just before any other
 * write, so that a page that is left at once reopens as it was. A later link wins.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

/** Browsers throttle pages that rewrite their address too often. */
const ADDRESS_MS = 350;

const pendingWrites = new Set<DebouncedUrlWrite>();

export class DebouncedUrlWrite {
  #timer: ReturnType<typeof setTimeout> | null = null;
  #write: (() => void) | null = null;

  constructor(private readonly pauseMs = ADDRESS_MS) {}

  /** Replaces the pending write. */
  put(write: () => void): void {
    this.drop();
    this.#write = write;
    pendingWrites.add(this);
    this.#timer = setTimeout(() => this.writeNow(), this.pauseMs);
  }

  drop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#write = null;
    pendingWrites.delete(this);
  }

  writeNow(): void {
    const write = this.#write;
    // First, because writing asks for all that is pending.
    this.drop();
    write?.();
  }
}

export function writePendingUrls(): void {
  for (const pending of [...pendingWrites]) pending.writeNow();
}

type Words = Readonly<Record<string, string | null>>;
type How = "replace" | "push";

interface DebouncedUrl {
  readonly params: ReadonlyMap<string, string>;
  readonly setParams: (changes: Words, how: How) => void;
  readonly names: readonly string[];
  /** A link or the back button changed the state. */
  readonly follow: () => void;
  /** Follows the initial URL too. */
  readonly atFirst?: boolean;
  readonly pauseMs?: number;
}

/**
 * Writes, with a delay, what the passed function then returns. A gesture is one entry of
 * the history; "replace" is for moves that follow from an action which has its own.
 */
export function useDebouncedUrl(
  of: DebouncedUrl,
): (make: () => Words, how?: How) => void {
  const { names, atFirst = false } = of;
  const newest = useRef(of);
  newest.current = of;
  const late = useMemo(() => new DebouncedUrlWrite(of.pauseMs), []);
  const address = names.map((name) => of.params.get(name) ?? "").join(" ");
  const written = useRef(atFirst ? null : address);
  const [numWritten, setNumWritten] = useState(0);
  useEffect(() => {
    if (address === written.current) return;
    written.current = address;
    late.drop();
    newest.current.follow();
    // Counted: a link may lead back to what was there before anything was written.
  }, [address, numWritten]);
  useEffect(() => () => late.drop(), []);
  return (make, how = "push") =>
    late.put(() => {
      const changes = make();
      const next = names.map((name) => changes[name] ?? "").join(" ");
      if (next === written.current) return;
      written.current = next;
      setNumWritten((num) => num + 1);
      newest.current.setParams(changes, how);
    });
}
