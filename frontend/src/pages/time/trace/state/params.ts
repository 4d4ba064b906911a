import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useDebouncedUrl } from "../../../../base/debounced_url";
import type { XRange } from "../../../../widgets/plot/range";
import {
  optional,
  switched,
  text,
  whole,
  type Word,
  type PageState,
} from "../../../shared/page_state";
import type { ViewProps } from "../../../shared/view_props";
import { within } from "../plot/layout";

/** By source and row; below 0: an instant. */
export interface SliceRef {
  readonly source: string;
  readonly row: number;
}

const TIME = /^-?\d{1,19}$/;
const SLICE = /^([A-Za-z0-9_.-]{1,64}):(-?\d{1,10})$/;

/** Nanoseconds of a Unix time after `base`: exact within 104 days of it. */
export function since(base: bigint, time: string): number {
  return Number(BigInt(time) - base);
}

export function absolute(base: bigint, ns: number): string {
  return (base + BigInt(Math.round(ns))).toString();
}

/** The URL has Unix times, which a number cannot hold exactly. */
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

/** Words of the request; without a cycle, the newest trace of each rank. */
export const ASKED = {
  tab: switched(
    "tab",
    {
      timeline: ["Timeline", "What ran when, on all ranks"],
      summary: ["Summary", "Operators and memory by category of each recorded trace"],
    },
    "timeline",
  ),
  cycle: whole("cycle"),
  step: whole("step"),
  source: optional("source"),
};

/** Rows of the sums of a range. */
export const RANGE_BY = switched(
  "r_by",
  {
    name: ["By name", "Sums over all tracks of the range"],
    track: ["By track", "Sums of each track of the range"],
  },
  "name",
);

export function wordsOf(base: bigint) {
  return {
    window: times(base, "w0", "w1"),
    slice: SLICE_WORD,
    range: times(base, "r0", "r1"),
    /** Its tracks, in the routes' syntax; "": all that are shown. */
    rangeTracks: text("r_tracks"),
    rangeBy: RANGE_BY,
    find: text("find"),
    /** Keys of folded rows, and of pinned tracks. */
    closed: text("closed"),
    pins: text("pins"),
    only: text("tracks"),
  };
}

export type TraceState = PageState<ReturnType<typeof wordsOf>>;

export function toggled(keys: string, key: string): string {
  const next = new Set(keys.split(",").filter(Boolean));
  if (!next.delete(key)) next.add(key);
  return [...next].join(",");
}

const URL_PAUSE_MS = 180;

/** `first` is the default and stays out of the URL. */
export function useWindow(
  { params, setParams }: ViewProps,
  base: bigint,
  asked: XRange | null,
  extent: XRange,
  first: XRange,
) {
  const shown = useSignal(first);
  const moved = useRef(false);
  const windowWord = useMemo(() => times(base, "w0", "w1"), [base]);
  const write = useDebouncedUrl({
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
    // More sources were opened before the user moved.
    if (!moved.current) shown.value = first;
  }, [first]);
  const setWindow = (next: XRange, how: "replace" | "push" = "push"): void => {
    moved.current = true;
    shown.value = within(next, extent);
    write(() => windowWord.write(shown.peek()), how);
  };
  return { shown, setWindow };
}
