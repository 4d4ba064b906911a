/** The moment looked at: at once on the page, in the URL once it rests. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SetParams } from "../history_params";
import { LateWords } from "../../base/late_words";

export function useMoment(
  named: number | null,
  setParams: SetParams,
): readonly [number | null, (moment: number | null) => void] {
  const [moment, setMoment] = useState(named);
  const told = useRef(named);
  const late = useMemo(() => new LateWords(), []);
  const [numWritten, setNumWritten] = useState(0);
  const newest = useRef(setParams);
  newest.current = setParams;
  useEffect(() => {
    if (named === told.current) return;
    // A link or the back button says another.
    told.current = named;
    late.drop();
    setMoment(named);
    // Counted: a link may lead back to what stood there before anything was written.
  }, [named, numWritten]);
  useEffect(() => () => late.drop(), []);
  const choose = (next: number | null): void => {
    setMoment(next);
    late.put(() => {
      told.current = next;
      setNumWritten((num) => num + 1);
      newest.current({ moment: next === null ? null : next.toString() });
    });
  };
  return [moment, choose];
}
