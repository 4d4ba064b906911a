/** What of the Trace page stands in the URL, and the window that moves with gestures. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useLateWords } from "../../../../base/late_words";
import type { XRange } from "../../../../widgets/plot/range";
import { optional, text, whole, type Word } from "../../../shared/page_state";
import type { ViewProps } from "../../../shared/view_props";
import { within } from "../plot/layout";

/** A slice by its source and row; below 0: an instant. */
export interface SliceRef {
  readonly source: string;
  readonly row: number;
}

const TIME = /^-?\d{1,19}$/;
const SLICE = /^([A-Za-z0-9_.-]{1,64}):(-?\d{1,10})$/;

/** Nanoseconds of a time since 1970 after `base`: exact within 104 days of it. */
export function since(base: bigint, time: string): number {
  return Number(BigInt(time) - base);
}

export function absolute(base: bigint, ns: number): string {
  return (base + BigInt(Math.round(ns))).toString();
}

/** A range of the timeline; in the URL since 1970, beyond what a number holds exactly. */
export function times(base: bigint, low: string, high: string): Word<XRange | null> {
  return {
    read: (params) => {
      const [from, to] = [params.get(low) ?? "", params.get(high) ?? ""];
      if (!TIME.test(from) || !TIME.test(to) || BigInt(from) >= BigInt(to)) return null;
      return { low: since(base, from), high: since(base, to) };
    },
    write: (range) => ({
      [low]: range && absolute(base, range.low),
      [high]: range && absolute(base, range.high),
    }),
  };
}

export const SLICE_WORD: Word<SliceRef | null> = {
  read: (params) => {
    const [, source, row] = SLICE.exec(params.get("slice") ?? "") ?? [];
    return source === undefined ? null : { source, row: Number(row) };
  },
  write: (slice) => ({ slice: slice && `${slice.source}:${slice.row}` }),
};

/** What the server is asked for: without a cycle, the newest of each rank. */
export const ASKED = {
  tab: text("tab"),
  cycle: whole("cycle"),
  step: whole("step"),
  source: optional("source"),
};

export function wordsOf(base: bigint) {
  return {
    window: times(base, "w0", "w1"),
    slice: SLICE_WORD,
    /** What is summed up beside the timeline. */
    range: times(base, "r0", "r1"),
    /** Of these tracks, as the routes read them; "" for all that are shown. */
    rangeTracks: text("r_tracks"),
    find: text("find"),
    /** Keys of what is folded away, and of tracks that stay at the top. */
    closed: text("closed"),
    pins: text("pins"),
    /** Of tracks with these words in their names alone. */
    only: text("tracks"),
  };
}

/** Keys as a word of the URL, with one the other way round. */
export function toggled(keys: string, key: string): string {
  const next = new Set(keys.split(",").filter(Boolean));
  if (!next.delete(key)) next.add(key);
  return [...next].join(",");
}

const URL_PAUSE_MS = 180;

/** `first`: what is shown where the URL says nothing; it stays out of the URL. */
export function useWindow(
  { params, setParams }: ViewProps,
  base: bigint,
  asked: XRange | null,
  extent: XRange,
  first: XRange,
) {
  const shown = useSignal(first);
  const moved = useRef(false);
  const words = useMemo(() => times(base, "w0", "w1"), [base]);
  const write = useLateWords({
    params,
    setParams,
    names: ["w0", "w1"],
    follow: () => {
      // A window of other traces shows nothing of these.
      const isThere =
        asked !== null && asked.low < extent.high && asked.high > extent.low;
      moved.current = isThere;
      shown.value = isThere ? asked : first;
    },
    atFirst: true,
    pauseMs: URL_PAUSE_MS,
  });
  useEffect(() => {
    // Further sources were opened, and nobody has moved yet.
    if (!moved.current) shown.value = first;
  }, [first]);
  const setWindow = (next: XRange): void => {
    moved.current = true;
    shown.value = within(next, extent);
    write(() => words.write(shown.peek()));
  };
  return { shown, setWindow };
}
