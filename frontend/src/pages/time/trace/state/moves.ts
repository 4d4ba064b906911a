/** How one gets about: to what was found or chosen, from step to step, instant to instant. */

import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { TraceResponse, TraceSearchResponse } from "../../../../api/types.gen";
import type { ViewProps } from "../../../shared/view_props";
import { instantWords, since, sliceWords, type SliceRef } from "./params";
import { stepBeside, windowOn, type Place } from "../plot/place";
import type { Chosen } from "./chosen";
import type { ChosenInstant } from "./instants";
import { hitAt, hitBeside, indexBeside, timeBeside, type Search } from "./search";
import type { TraceWindow } from "./window";

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
