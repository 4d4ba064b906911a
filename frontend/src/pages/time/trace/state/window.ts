/** What of the time is in sight: a signal that a pan moves, and the URL follows. */

import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useLateWords } from "../../../../base/use_late_words";
import type { ViewProps } from "../../../shared/view_props";
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
  const write = useLateWords({
    params: view.params,
    setParams: view.setParams,
    names: ["w0", "w1"],
    follow: () => {
      shown.value =
        asked === null
          ? first
          : { low: since(base, asked.low), high: since(base, asked.high) };
    },
    atFirst: true,
    pauseMs: URL_PAUSE_MS,
  });
  const newest = useRef(write);
  newest.current = write;
  useEffect(() => {
    let skip = true;
    return shown.subscribe(({ low, high }) => {
      if (skip) {
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
