/** How one gets about: to what was found or chosen, from step to step, instant to instant. */

import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef, useMemo, useState } from "preact/hooks";
import type { TraceResponse, TraceSearchResponse } from "../../../../api/types.gen";
import type { ViewProps } from "../../../shared/view_props";
import {
  instantWords,
  since,
  sliceWords,
  type SliceRef,
  type TraceWindow,
} from "./params";
import { stepBeside, windowOn, type Place } from "../plot/layout";
import type { Chosen, ChosenInstant } from "./chosen";
import type { Client } from "../../../../api/client";
import { useOnce } from "../../../../api/use_once";
import { MARK_LEVEL } from "../tiles/tile";

/** A lane that is to be scrolled to. */
export interface Sought {
  readonly trackKey: string;
  readonly level: number;
}

export interface Moves {
  readonly scrollTo: Signal<Sought | null>;
  /** Shows a slice whose place is known. */
  readonly show: (place: Place) => void;
  /** `reveal`: it is brought into sight once it is known where it lies. */
  readonly choose: (slice: SliceRef | null, reveal: boolean) => void;
  readonly chooseInstant: (instant: SliceRef | null) => void;
  /** To the next that was found, or the one before. */
  readonly next: (sign: 1 | -1) => void;
  readonly nextInstant: (sign: 1 | -1) => void;
  readonly step: (sign: 1 | -1) => void;
}

export function useMoves(about: {
  readonly view: ViewProps;
  readonly answer: TraceResponse;
  readonly base: bigint;
  readonly window: TraceWindow;
  readonly search: Search;
  readonly find: string;
  readonly chosen: Chosen;
  readonly instant: ChosenInstant;
  /** All there are; null while they are not known. */
  readonly instants: TraceSearchResponse | null;
  readonly hasInstants: boolean;
}): Moves {
  const { view, answer, base, search, find, instants } = about;
  const { shown, setWindow } = about.window;
  const { selected } = about.chosen;
  const scrollTo = useSignal<Sought | null>(null);
  const wantsSight = useRef(false);

  const show = (place: Place): void => {
    const next = windowOn(place, shown.peek());
    if (next !== null) setWindow(next);
    scrollTo.value = { trackKey: place.trackKey, level: place.level };
  };
  const choose = (slice: SliceRef | null, reveal: boolean): void => {
    wantsSight.current = reveal;
    view.setParams(sliceWords(slice), "push");
  };
  useEffect(() => {
    if (selected === null || !wantsSight.current) return;
    wantsSight.current = false;
    show(selected);
  }, [selected]);

  const chooseInstant = (instant: SliceRef | null): void =>
    view.setParams(instantWords(instant), "push");
  const showHit = (hits: TraceSearchResponse, at: number): void => {
    const { place, ref, isInstant } = hitAt(hits, at, base);
    show(place);
    if (isInstant) chooseInstant(ref);
    else choose(ref, false);
  };
  const next = (sign: 1 | -1): void => {
    const { hits } = search;
    if (hits === null) return;
    const shift = since(base, BigInt(hits.t0));
    const at = hitBeside(hits.startNs, search.at, sign, shown.peek().low - shift);
    if (at === null) {
      view.say(`Nothing is called “${find}”`);
      return;
    }
    search.setAt(at);
    showHit(hits, at);
  };
  const wanted = useRef<1 | -1 | null>(null);
  const nextInstant = (sign: 1 | -1): void => {
    // Where they are is still being asked: one goes there once it is known.
    wanted.current = instants === null && about.hasInstants ? sign : null;
    if (wanted.current !== null) return;
    const { low, high } = shown.peek();
    const from = about.instant.place?.startNs ?? (low + high) / 2;
    const shift = instants === null ? 0 : since(base, BigInt(instants.t0));
    const times = instants?.startNs ?? [];
    const own = about.instant.instant;
    const at =
      own === null || instants === null
        ? timeBeside(times, from - shift, sign)
        : indexBeside(instants, own, sign);
    if (instants === null || at === null) {
      view.say(times.length === 0 ? "No instants were recorded" : "No further instant");
    } else showHit(instants, at);
  };
  useEffect(() => {
    if (instants !== null && wanted.current !== null) nextInstant(wanted.current);
  }, [instants]);
  const step = (sign: 1 | -1): void => {
    const { low, high } = shown.peek();
    const found = stepBeside(answer.steps, (low + high) / 2, sign);
    if (found !== null) setWindow(found);
    else {
      const none = answer.steps.number.length === 0;
      view.say(none ? "No steps are known" : "No further step");
    }
  };
  return { scrollTo, show, choose, chooseInstant, next, nextInstant, step };
}

const PAUSE_MS = 250;

export interface Search {
  readonly hits: TraceSearchResponse | null;
  readonly at: number | null;
  readonly setAt: (at: number | null) => void;
}

/** Where a hit lies, and what it is. Pure. */
export function hitAt(
  hits: TraceSearchResponse,
  at: number,
  base: bigint,
): { readonly place: Place; readonly ref: SliceRef; readonly isInstant: boolean } {
  const startNs = (hits.startNs[at] ?? 0) + since(base, BigInt(hits.t0));
  const trackKey = hits.tracks[hits.track[at] ?? 0] ?? "";
  const isInstant = hits.isInstant[at] === 1;
  const endNs = startNs + (hits.durationNs[at] ?? 0);
  const level = isInstant ? MARK_LEVEL : (hits.level[at] ?? 0);
  const source = trackKey.slice(0, trackKey.lastIndexOf(":"));
  return {
    place: { trackKey, level, startNs, endNs },
    ref: { source, row: hits.row[at] ?? 0 },
    isInstant,
  };
}

/** The hit after (or before) a time; round at the ends. `times` ascend. Pure. */
export function hitBeside(
  times: ArrayLike<number>,
  at: number | null,
  sign: 1 | -1,
  fromNs: number,
): number | null {
  const count = times.length;
  if (count === 0) return null;
  if (at !== null && at < count) return (at + sign + count) % count;
  let first = 0;
  while (first < count && (times[first] ?? 0) < fromNs) first += 1;
  return sign > 0 ? first % count : (first - 1 + count) % count;
}

/** The first after (or last before) a time; null at the end. `times` ascend. Pure. */
export function timeBeside(
  times: ArrayLike<number>,
  ns: number,
  sign: 1 | -1,
): number | null {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const time = times[middle] ?? 0;
    if (sign > 0 ? time <= ns : time < ns) low = middle + 1;
    else high = middle;
  }
  const at = sign > 0 ? low : low - 1;
  return at >= 0 && at < times.length ? at : null;
}

/** The neighbour in a list of one that is in it: several may have one time. Pure. */
export function indexBeside(
  hits: TraceSearchResponse,
  own: { readonly track: string; readonly row: number },
  sign: 1 | -1,
): number | null {
  const which = hits.tracks.indexOf(own.track);
  const at = hits.row.findIndex((row, i) => row === own.row && hits.track[i] === which);
  if (at < 0) return null;
  const beside = at + sign;
  return beside >= 0 && beside < hits.row.length ? beside : null;
}

export function useSearch(
  client: Client,
  run: string,
  tracks: string,
  find: string,
): Search {
  const [settled, setSettled] = useState(find);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(find), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [find]);
  const asked = useMemo(
    () => (settled === "" || tracks === "" ? null : { run, tracks, text: settled }),
    [run, tracks, settled],
  );
  const live = useOnce(client, "trace_search", asked);
  useEffect(() => setAt(null), [settled]);
  return { hits: find === "" || asked === null ? null : live.data, at, setAt };
}
