/**
 * Answers by number, the most wanted requested first. While the user scrolls or drags,
 * numbers already passed are not requested, and the last answer is shown until a newer
 * one arrives.
 */

import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import { isAbort, type ApiError } from "../../../api/client";

/** Chunks of a list, or a few past and prefetched moments. */
const MOST_KEPT = 24;
const MOST_FLIGHTS = 3;
/** Delay after a failure. */
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

  /** The most wanted; until it arrives, the last that did. */
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
        // An older answer must not replace the most wanted one.
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

/** `of`: the subject; a change drops all answers. */
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
