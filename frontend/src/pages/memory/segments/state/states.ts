/**
 * States of the allocator, asked for one by one. While the scrubber is dragged only the
 * newest moment counts: one request is under way, and what arrives for a moment that is
 * passed already is shown only until the newer one is there. While it plays the next
 * states are asked for ahead, so that each is there when it is due.
 */

import {
  isAbort,
  type ApiError,
  type Client,
  type Query,
} from "../../../../api/client";
import type { SegmentsResponse } from "../../../../api/types.gen";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLateWords } from "../../../../base/use_late_words";
import {
  momentWords,
  shownMoment,
  type MemoryWords,
  type MomentPlace,
} from "../../history/moment";
import type { ViewProps } from "../../../shared/view_props";

/** States kept: a few steps back and those asked for ahead. */
const MOST_KEPT = 16;
/** Asked for ahead at the same time. */
const MOST_AHEAD = 3;
/** After a failure the next request waits. */
const RETRY_MS = 1_500;

export interface StateEvents {
  readonly onState: (state: SegmentsResponse) => void;
  readonly onFailure: (error: ApiError | null) => void;
}

type Asks = Pick<Client, "get">;

export class StateLoader {
  readonly #client: Asks;
  readonly #events: StateEvents;
  #subject = "";
  #place: Query = {};
  readonly #kept = new Map<number, SegmentsResponse>();
  readonly #ahead = new Map<number, AbortController>();
  #wanted: number | null = null;
  #flight: AbortController | null = null;
  #retry: ReturnType<typeof setTimeout> | null = null;
  #shown: SegmentsResponse | null = null;

  constructor(client: Asks, events: StateEvents) {
    this.#client = client;
    this.#events = events;
  }

  /** Another history, filter or order: what was kept is of no use. */
  about(place: Query): void {
    const subject = JSON.stringify(place);
    if (subject === this.#subject) return;
    this.#subject = subject;
    this.#place = place;
    this.#drop();
    this.#kept.clear();
    if (this.#wanted !== null) this.#next();
  }

  show(wanted: number): void {
    if (this.#wanted === wanted && (this.#flight !== null || this.#retry !== null)) {
      return;
    }
    this.#wanted = wanted;
    this.#next();
  }

  /** Whether a state is at hand. */
  has(moment: number): boolean {
    return this.#kept.has(moment);
  }

  /** Ask for states that will be wanted soon; others under way are given up. */
  ahead(moments: readonly number[]): void {
    for (const [moment, abort] of this.#ahead) {
      if (moments.includes(moment)) continue;
      abort.abort();
      this.#ahead.delete(moment);
    }
    for (const moment of moments) {
      if (this.#ahead.size >= MOST_AHEAD) return;
      if (this.#kept.has(moment) || this.#ahead.has(moment)) continue;
      const abort = new AbortController();
      this.#ahead.set(moment, abort);
      this.#get(moment, abort).then(
        (state) => {
          if (this.#ahead.get(moment) !== abort) return;
          this.#ahead.delete(moment);
          this.#keep(moment, state);
        },
        () => {
          // It is asked for again when it is due, and says then what is wrong.
          if (this.#ahead.get(moment) === abort) this.#ahead.delete(moment);
        },
      );
    }
  }

  close(): void {
    this.#drop();
    this.#wanted = null;
  }

  #drop(): void {
    this.#flight?.abort();
    this.#flight = null;
    for (const abort of this.#ahead.values()) abort.abort();
    this.#ahead.clear();
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
  }

  #get(moment: number, abort: AbortController): Promise<SegmentsResponse> {
    const query = { ...this.#place, moment };
    return this.#client.get("segments", query, abort.signal);
  }

  #keep(moment: number, state: SegmentsResponse): void {
    this.#kept.delete(moment);
    this.#kept.set(moment, state);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }

  #say(state: SegmentsResponse): void {
    if (state === this.#shown) return;
    this.#shown = state;
    this.#events.onState(state);
  }

  #next(): void {
    const wanted = this.#wanted;
    if (wanted === null) return;
    const known = this.#kept.get(wanted);
    if (known !== undefined) {
      // Now that it is here, an older one must not come after it.
      this.#flight?.abort();
      this.#flight = null;
      this.#keep(wanted, known);
      this.#say(known);
      return;
    }
    if (this.#flight !== null || this.#retry !== null) return;
    const abort = new AbortController();
    this.#flight = abort;
    this.#get(wanted, abort).then(
      (state) => {
        if (this.#flight !== abort) return;
        this.#flight = null;
        this.#keep(wanted, state);
        this.#events.onFailure(null);
        this.#say(state);
        if (this.#wanted !== wanted) this.#next();
      },
      (error: unknown) => {
        if (this.#flight !== abort) return;
        this.#flight = null;
        if (isAbort(error)) return;
        this.#events.onFailure(error as ApiError);
        this.#retry = setTimeout(() => {
          this.#retry = null;
          this.#next();
        }, RETRY_MS);
      },
    );
  }
}

/** The moment looked at: at once on the page, in the URL once it rests. */
export function useMoment(
  words: MemoryWords,
  place: MomentPlace,
  { params, setParams }: Pick<ViewProps, "params" | "setParams">,
): readonly [number, (moment: number) => void] {
  const named = shownMoment(words, place);
  const [moment, setMoment] = useState(named);
  const write = useLateWords({
    params,
    setParams,
    names: ["moment"],
    follow: () => setMoment(named),
  });
  const choose = (next: number): void => {
    setMoment(next);
    write(() => momentWords(next, place));
  };
  return [moment, choose];
}

/** The allocator's state at a moment as a hook. */
export interface States {
  readonly loader: StateLoader;
  /** The newest; of an earlier moment while the wanted one is on its way. */
  readonly state: SegmentsResponse | null;
  readonly error: ApiError | null;
}

/** `place`: run, history, device, filters and order. */
export function useStates(client: Client, place: Query, moment: number): States {
  const [state, setState] = useState<SegmentsResponse | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const loader = useMemo(
    () => new StateLoader(client, { onState: setState, onFailure: setError }),
    [client],
  );
  const key = JSON.stringify(place);
  const newest = useRef(place);
  newest.current = place;
  useEffect(() => {
    loader.about(newest.current);
    loader.show(moment);
  }, [loader, key, moment]);
  useEffect(() => () => loader.close(), [loader]);
  return { loader, state, error };
}
