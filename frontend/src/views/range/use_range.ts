/**
 * The visible range: moves at once while the user drags, is asked for once a gesture
 * has settled, and stands in the URL a little later. Links and the back button win.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { XRange } from "../../widgets/line_chart/types";
import { LateWords } from "../../base/late_words";
import { rangeWords, readRange, X_WORDS, type RangeWords } from "./params";

const SETTLE_MS = 150;

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
  const settle = useRef(0);
  const late = useMemo(() => new LateWords(), []);
  const [numWritten, setNumWritten] = useState(0);
  const address = `${params.get(names.low) ?? ""} ${params.get(names.high) ?? ""}`;
  const written = useRef(address);
  const write = useRef(setParams);
  write.current = setParams;

  useEffect(() => {
    if (address === written.current) return;
    written.current = address;
    late.drop();
    window.clearTimeout(settle.current);
    const range = readRange(params, names);
    setShown(range);
    setSettled(range);
    // Counted: a link may lead back to what stood there before anything was written.
  }, [address, numWritten]);
  useEffect(
    () => () => {
      late.drop();
      window.clearTimeout(settle.current);
    },
    [],
  );

  function setRange(range: XRange | null): void {
    setShown(range);
    window.clearTimeout(settle.current);
    settle.current = window.setTimeout(() => setSettled(range), SETTLE_MS);
    late.put(() => {
      const words = rangeWords(range, names);
      written.current = `${words[names.low] ?? ""} ${words[names.high] ?? ""}`;
      setNumWritten((num) => num + 1);
      write.current(words);
    });
  }
  return { shown, settled, setRange };
}
