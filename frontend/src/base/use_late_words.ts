/** State that moves with a gesture and stands in the URL once the gesture rests. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { LateWords } from "./late_words";

type Words = Readonly<Record<string, string | null>>;

interface LateAddress {
  readonly params: ReadonlyMap<string, string>;
  readonly setParams: (words: Words) => void;
  /** The words of the URL that say the state. */
  readonly names: readonly string[];
  /** A link or the back button says another state. */
  readonly follow: () => void;
  /** Whether what the URL says at first is followed too. */
  readonly atFirst?: boolean;
  /** While false nothing is followed. */
  readonly ready?: boolean;
  readonly pauseMs?: number;
}

/** Writes, with a delay, the words that the function passed then makes. */
export function useLateWords(of: LateAddress): (words: () => Words) => void {
  const { names, atFirst = false, ready = true } = of;
  const newest = useRef(of);
  newest.current = of;
  const late = useMemo(() => new LateWords(of.pauseMs), []);
  const address = names.map((name) => of.params.get(name) ?? "").join(" ");
  const written = useRef(atFirst ? null : address);
  const [numWritten, setNumWritten] = useState(0);
  useEffect(() => {
    if (!ready || address === written.current) return;
    written.current = address;
    late.drop();
    newest.current.follow();
    // Counted: a link may lead back to what stood there before anything was written.
  }, [ready, address, numWritten]);
  useEffect(() => () => late.drop(), []);
  return (make) =>
    late.put(() => {
      const words = make();
      const next = names.map((name) => words[name] ?? "").join(" ");
      if (next === written.current) return;
      written.current = next;
      setNumWritten((num) => num + 1);
      newest.current.setParams(words);
    });
}
