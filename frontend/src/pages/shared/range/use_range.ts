/**
 * The visible range: immediate while dragging, requested after the gesture, in the URL
 * a little later. Links and the back button override it.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { XRange } from "../../../widgets/plot/range";
import { useDebouncedUrl } from "../../../base/debounced_url";
import type { ViewProps } from "../view_props";
import { rangeWords, readRange, X_WORDS, type RangeWords } from "./params";

const SETTLE_MS = 150;

export interface RangeState {
  /** null follows everything as it grows. */
  readonly shown: XRange | null;
  /** Requested once a gesture has ended. */
  readonly settled: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}

export function useRange(
  params: ReadonlyMap<string, string>,
  setParams: ViewProps["setParams"],
  names: RangeWords = X_WORDS,
): RangeState {
  const [shown, setShown] = useState(() => readRange(params, names));
  const [settled, setSettled] = useState(shown);
  const settle = useRef(0);
  const write = useDebouncedUrl({
    params,
    setParams,
    names: [names.low, names.high],
    follow: () => {
      window.clearTimeout(settle.current);
      const range = readRange(params, names);
      setShown(range);
      setSettled(range);
    },
  });
  useEffect(() => () => window.clearTimeout(settle.current), []);

  function setRange(range: XRange | null): void {
    setShown(range);
    window.clearTimeout(settle.current);
    settle.current = window.setTimeout(() => setSettled(range), SETTLE_MS);
    write(() => rangeWords(range, names));
  }
  return { shown, settled, setRange };
}
