/**
 * The visible range: moves at once while the user drags, is asked for once a gesture
 * has settled, and stands in the URL a little later. Links and the back button win.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { XRange } from "../widgets/line_chart/types";
import { rangeWords, readRange, X_WORDS, type RangeWords } from "./x_params";

const SETTLE_MS = 150;
/** Browsers throttle pages that rewrite their address too often. */
const ADDRESS_MS = 350;

export interface RangeState {
  /** What is shown; null follows everything as it grows. */
  readonly shown: XRange | null;
  /** What has settled and is asked for. */
  readonly settled: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}

export function useRange(
  params: ReadonlyMap<string, string>,
  setParams: (changes: Readonly<Record<string, string | null>>) => void,
  names: RangeWords = X_WORDS,
): RangeState {
  const [shown, setShown] = useState(() => readRange(params, names));
  const [settled, setSettled] = useState(shown);
  const timers = useRef({ settle: 0, address: 0 });
  const address = `${params.get(names.low) ?? ""} ${params.get(names.high) ?? ""}`;
  const written = useRef(address);
  const write = useRef(setParams);
  write.current = setParams;

  useEffect(() => {
    if (address === written.current) return;
    written.current = address;
    const range = readRange(params, names);
    setShown(range);
    setSettled(range);
  }, [address]);
  useEffect(
    () => () => {
      window.clearTimeout(timers.current.settle);
      window.clearTimeout(timers.current.address);
    },
    [],
  );

  function setRange(range: XRange | null): void {
    setShown(range);
    window.clearTimeout(timers.current.settle);
    window.clearTimeout(timers.current.address);
    timers.current.settle = window.setTimeout(() => {
      setSettled(range);
    }, SETTLE_MS);
    timers.current.address = window.setTimeout(() => {
      const words = rangeWords(range, names);
      written.current = `${words[names.low] ?? ""} ${words[names.high] ?? ""}`;
      write.current(words);
    }, ADDRESS_MS);
  }
  return { shown, settled, setRange };
}
