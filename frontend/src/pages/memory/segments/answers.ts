/**
 * Answers by number, the most wanted requested first. While the user scrolls or drags,
 * numbers already passed are not requested, and the last answer is shown until a newer
 * one arrives.
 */

import { useMemo } from "preact/hooks";
import type { Query } from "../../../api/client";
import { useTileLoader, type TileSource } from "../../../api/tiles";

/** Chunks of a list, or a few past and prefetched moments. */
const MOST_KEPT = 24;

interface NumberedAnswer<T> {
  readonly key: number;
  readonly answer: T;
}

type Ask<T> = (key: number, signal: AbortSignal) => Promise<T>;

export function answerSource<T>(
  subject: Query,
  ask: Ask<T>,
): TileSource<readonly number[], number, NumberedAnswer<T>> {
  return {
    stamp: JSON.stringify(subject),
    most: MOST_KEPT,
    wanted: (loaded, keys) =>
      keys.find((key) => loaded.every((answer) => answer.key !== key)) ?? null,
    keyOf: String,
    isSpent: () => false,
    ask: async (key, signal) => ({ key, answer: await ask(key, signal) }),
    isWhole: () => false,
    shown: (loaded) => loaded,
  };
}

export function useAnswers<T>(subject: Query, ask: Ask<T>) {
  const source = useMemo(() => answerSource(subject, ask), [JSON.stringify(subject)]);
  const loader = useTileLoader(source);
  // Subscribes, so that every arrival is drawn.
  const loaded = loader.version.value < 0 ? [] : loader.shown;
  return {
    error: loader.error.value,
    /** The last that arrived. */
    newest: loaded.at(-1)?.answer ?? null,
    get: (key: number): T | undefined =>
      loaded.findLast((answer) => answer.key === key)?.answer,
    want: (keys: readonly number[]): void => loader.look(keys, true),
  };
}
