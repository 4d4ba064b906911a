/** The Trace page's words in the URL, read and checked. Pure. */

import { whole } from "../../../memory/history/params";
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useLateWords } from "../../../../base/use_late_words";
import type { ViewProps } from "../../../shared/view_props";
import { within, type NsRange } from "../plot/layout";

/** A stretch of time in nanoseconds since 1970: beyond what a number holds exactly. */
export interface Stretch {
  readonly low: bigint;
  readonly high: bigint;
}

/** A slice, or an instant, by its source and row. */
export interface SliceRef {
  readonly source: string;
  readonly row: number;
}

export interface TraceParams {
  /** null: what is shown first, or everything. */
  readonly window: Stretch | null;
  readonly slice: SliceRef | null;
  readonly instant: SliceRef | null;
  /** What is summed up in the drawer. */
  readonly range: Stretch | null;
  /** Of these tracks, as the routes read them; "" for all that are shown. */
  readonly rangeTracks: string;
  readonly find: string;
  /** Keys of what is folded away. */
  readonly closed: ReadonlySet<string>;
  /** Tracks that stay at the top, as `id:index`. */
  readonly pins: ReadonlySet<string>;
  /** Of tracks with these words in their names alone; "" for all. */
  readonly only: string;
  /** null: the newest of each rank. */
  readonly cycle: number | null;
  /** What other pages chose: what is shown first. */
  readonly step: number | null;
}

const TIME = /^-?\d{1,19}$/;
const SLICE = /^([A-Za-z0-9_.-]{1,64}):(\d{1,10})$/;

export function stretch(
  low: string | undefined,
  high: string | undefined,
): Stretch | null {
  if (low === undefined || high === undefined) return null;
  if (!TIME.test(low) || !TIME.test(high)) return null;
  const [a, b] = [BigInt(low), BigInt(high)];
  return a < b ? { low: a, high: b } : null;
}

export function sliceRef(text: string | undefined): SliceRef | null {
  const match = SLICE.exec(text ?? "");
  if (match === null) return null;
  return { source: match[1] ?? "", row: Number(match[2]) };
}

export function readTrace(params: ReadonlyMap<string, string>): TraceParams {
  const keys = (name: string) =>
    new Set((params.get(name) ?? "").split(",").filter((key) => key !== ""));
  return {
    window: stretch(params.get("w0"), params.get("w1")),
    slice: sliceRef(params.get("slice")),
    instant: sliceRef(params.get("instant")),
    range: stretch(params.get("r0"), params.get("r1")),
    rangeTracks: params.get("r_tracks") ?? "",
    find: params.get("find") ?? "",
    closed: keys("closed"),
    pins: keys("pins"),
    only: params.get("tracks") ?? "",
    cycle: whole(params.get("cycle")),
    step: whole(params.get("step")),
  };
}

/** The set as a word of the URL, with one key the other way round. */
export function toggled(keys: ReadonlySet<string>, key: string): string {
  const next = new Set(keys);
  if (!next.delete(key)) next.add(key);
  return [...next].join(",");
}

export type Words = Readonly<Record<string, string | null>>;

export function windowWords(window: Stretch | null): Words {
  return { w0: window?.low.toString() ?? null, w1: window?.high.toString() ?? null };
}

export function rangeWords(range: Stretch | null, tracks: string): Words {
  return {
    r0: range?.low.toString() ?? null,
    r1: range?.high.toString() ?? null,
    r_tracks: range === null || tracks === "" ? null : tracks,
    slice: null,
    instant: null,
  };
}

export function sliceWords(slice: SliceRef | null): Words {
  return {
    slice: slice === null ? null : `${slice.source}:${slice.row}`,
    instant: null,
    r0: null,
    r1: null,
    r_tracks: null,
  };
}

export function instantWords(instant: SliceRef | null): Words {
  const words = sliceWords(null);
  if (instant === null) return words;
  return { ...words, instant: `${instant.source}:${instant.row}` };
}

/** Nanoseconds since `base`, as a number: exact within 104 days of it. */
export function since(base: bigint, time: bigint): number {
  return Number(time - base);
}

export function absolute(base: bigint, ns: number): bigint {
  return base + BigInt(Math.round(ns));
}

const URL_PAUSE_MS = 180;

export interface TraceWindow {
  readonly shown: Signal<NsRange>;
  readonly setWindow: (next: NsRange) => void;
  readonly fit: () => void;
}

/** `first`: what is shown where the URL says nothing. */
export function useWindow(
  view: ViewProps,
  asked: Stretch | null,
  base: bigint,
  extent: NsRange,
  first: NsRange,
): TraceWindow {
  const shown = useSignal<NsRange>(first);
  /** What was shown without anybody asking: it stays out of the URL. */
  const automatic = useRef(first);
  const write = useLateWords({
    params: view.params,
    setParams: view.setParams,
    names: ["w0", "w1"],
    follow: () => {
      const window =
        asked === null
          ? null
          : { low: since(base, asked.low), high: since(base, asked.high) };
      // A window of other traces shows nothing of these.
      const isThere =
        window !== null && window.low < extent.high && window.high > extent.low;
      if (!isThere) automatic.current = first;
      shown.value = isThere ? window : first;
    },
    atFirst: true,
    pauseMs: URL_PAUSE_MS,
  });
  const newest = useRef(write);
  newest.current = write;
  useEffect(() => {
    // Further sources were opened, and nobody has moved yet.
    if (shown.peek() !== automatic.current) return;
    automatic.current = first;
    shown.value = first;
  }, [first]);
  useEffect(() => {
    let skip = true;
    return shown.subscribe((window) => {
      const { low, high } = window;
      if (skip || window === automatic.current) {
        skip = false;
        return;
      }
      newest.current(() =>
        windowWords({ low: absolute(base, low), high: absolute(base, high) }),
      );
    });
  }, [base]);
  const setWindow = (next: NsRange): void => {
    shown.value = within(next, extent);
  };
  return {
    shown,
    setWindow,
    fit: () => setWindow(extent),
  };
}
