/** Plays the history: a step at a time, each only once its state is at hand. */

import { useEffect, useRef, useState } from "preact/hooks";
import {
  clampedMoment,
  playStep,
  wholeRange,
  type EventRange,
} from "../../../../widgets/scrubber/place";
import type { StateLoader } from "./states";

const FRAMES_PER_SECOND = 12;
/** What is in sight takes about so long, however long it is. */
const SECONDS = 20;
const STEPS_AHEAD = 4;

export interface Playing {
  readonly playing: boolean;
  readonly toggle: () => void;
  readonly stop: () => void;
}

export function usePlaying(of: {
  readonly loader: StateLoader;
  readonly moment: number;
  readonly range: EventRange | null;
  readonly numEvents: number;
  readonly show: (moment: number) => void;
}): Playing {
  const [playing, setPlaying] = useState(false);
  const latest = useRef(of);
  latest.current = of;
  useEffect(() => {
    if (!playing) return undefined;
    const tick = (): void => {
      const { loader, moment, numEvents, show } = latest.current;
      const range = latest.current.range ?? wholeRange(numEvents);
      const step = playStep(range, SECONDS, FRAMES_PER_SECOND);
      const last = clampedMoment(Math.ceil(range.high) - 1, numEvents);
      if (moment >= last) {
        setPlaying(false);
        return;
      }
      const at = (steps: number): number => Math.min(moment + steps * step, last);
      const next = at(1);
      if (loader.has(next)) show(next);
      const coming = Array.from({ length: STEPS_AHEAD }, (_, i) => at(i + 1));
      loader.ahead([...new Set(coming)]);
    };
    const timer = window.setInterval(tick, 1000 / FRAMES_PER_SECOND);
    return () => {
      window.clearInterval(timer);
      latest.current.loader.ahead([]);
    };
  }, [playing]);
  return {
    playing,
    toggle: () => {
      const { moment, numEvents, show } = latest.current;
      const range = latest.current.range ?? wholeRange(numEvents);
      // At its end it begins anew.
      if (!playing && moment >= Math.ceil(range.high) - 1) {
        show(clampedMoment(Math.floor(range.low), numEvents));
      }
      setPlaying(!playing);
    },
    stop: () => setPlaying(false),
  };
}
