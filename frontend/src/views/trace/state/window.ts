/** What of the time is in sight: a signal that a pan moves, and the URL follows. */

import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { LateWords } from "../../../base/late_words";
import type { ViewProps } from "../../view_props";
import { absolute, since, windowWords, type Stretch } from "./params";
import { within, type NsRange } from "../plot/place";

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
  const written = useRef("");
  useEffect(() => {
    // What the address says, unless it says what was written there from here.
    const word = `${view.params.get("w0") ?? ""} ${view.params.get("w1") ?? ""}`;
    if (word === written.current) return;
    written.current = word;
    shown.value =
      asked === null
        ? first
        : { low: since(base, asked.low), high: since(base, asked.high) };
  }, [asked?.low, asked?.high, base, first]);
  const latestSet = useRef(view.setParams);
  latestSet.current = view.setParams;
  useEffect(() => {
    const late = new LateWords(URL_PAUSE_MS);
    let skip = true;
    const stop = shown.subscribe(({ low, high }) => {
      if (skip) {
        skip = false;
        return;
      }
      late.put(() => {
        const words = windowWords({
          low: absolute(base, low),
          high: absolute(base, high),
        });
        const word = `${words["w0"] ?? ""} ${words["w1"] ?? ""}`;
        if (word === written.current) return;
        written.current = word;
        latestSet.current(words);
      });
    });
    return () => {
      stop();
      late.drop();
    };
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
