/**
 * Answers by number, the most wanted asked for first. While somebody scrolls or drags only
 * what is wanted newest counts: what is passed already is not asked for, and what is under
 * way is shown until the newer one is there.
 */

import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import { isAbort, type ApiError } from "../../../api/client";

/** Pieces of a list, or a few moments back and those asked for ahead. */
const MOST_KEPT = 24;
const MOST_FLIGHTS = 3;
/** After a failure the next request waits. */
const RETRY_MS = 1_500;

type Ask<T> = (key: number, signal: AbortSignal) => Promise<T>;

export class Answers<T> {
  readonly #kept = new Map<number, T>();
  readonly #flights = new Map<number, AbortController>();
  #wanted: readonly number[] = [];
  #newest: T | null = null;
  #retry: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly ask: Ask<T>,
    private readonly onChange: (error: ApiError | null) => void,
  ) {}

  get(key: number): T | undefined {
    return this.#kept.get(key);
  }

  /** The most wanted; while it is on its way, what arrived last. */
  get newest(): T | null {
    return this.#newest;
  }

  want(keys: readonly number[]): void {
    this.#wanted = keys;
    this.#newest = this.#first() ?? this.#newest;
    this.#next();
  }

  close(): void {
    for (const abort of this.#flights.values()) abort.abort();
    this.#flights.clear();
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
  }

  #first(): T | undefined {
    return this.#kept.get(this.#wanted[0] ?? NaN);
  }

  #next(): void {
    const most = Math.min(this.#wanted.length, MOST_FLIGHTS);
    for (const key of this.#wanted) {
      if (this.#retry !== null || this.#flights.size >= most) return;
      if (!this.#kept.has(key) && !this.#flights.has(key)) this.#fly(key);
    }
  }

  #fly(key: number): void {
    const abort = new AbortController();
    this.#flights.set(key, abort);
    const landed = (): boolean =>
      this.#flights.get(key) === abort && this.#flights.delete(key);
    this.ask(key, abort.signal).then(
      (answer) => {
        if (!landed()) return;
        // Once the most wanted is here, an older one must not come after it.
        if (this.#first() === undefined) this.#newest = answer;
        this.#kept.set(key, answer);
        const [oldest] = this.#kept.keys();
        if (this.#kept.size > MOST_KEPT) this.#kept.delete(oldest ?? key);
        this.onChange(null);
        this.#next();
      },
      (error: unknown) => {
        if (!landed() || isAbort(error)) return;
        this.#retry = setTimeout(() => {
          this.#retry = null;
          this.#next();
        }, RETRY_MS);
        this.onChange(error as ApiError);
      },
    );
  }
}

/** `of`: what the answers are about; others are dropped when it changes. */
export function useAnswers<T>(
  ask: Ask<T>,
  of: readonly unknown[],
): { readonly answers: Answers<T>; readonly error: ApiError | null } {
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  const [error, setError] = useState<ApiError | null>(null);
  const answers = useMemo(
    () =>
      new Answers(ask, (problem) => {
        setError(problem);
        redraw(0);
      }),
    of,
  );
  useEffect(() => () => answers.close(), [answers]);
  return { answers, error };
}
