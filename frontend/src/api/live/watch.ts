/**
 * The last answer stays while the next is fetched; of several changes the latest
 * counts. A request whose visible range alone changed may finish, so that a drag shows
 * something; any other is aborted.
 */

import { listen } from "../../base/browser";
import {
  ApiError,
  isAbort,
  requestPath,
  type Client,
  type Query,
  type Route,
} from "../client";
import type { Responses } from "../types.gen";

/** Hidden iframes of TensorBoard run without height; `document.hidden` stays false. */
export interface Pulse {
  readonly visible: () => boolean;
  readonly onShown: (callback: () => void) => () => void;
}

export const pagePulse: Pulse = {
  visible: () => !document.hidden && window.innerHeight > 0,
  onShown: (callback) => {
    let before = pagePulse.visible();
    const check = (): void => {
      const now = pagePulse.visible();
      if (now && !before) callback();
      before = now;
    };
    return listen(window, ["resize", "visibilitychange"], check);
  },
};

export interface Live<T> {
  /** null until the first. */
  readonly data: T | null;
  /** `data` belongs to an earlier query. */
  readonly stale: boolean;
  /** null after the next success; `data` stays. */
  readonly error: ApiError | null;
}

export const NOTHING_YET = { data: null, stale: false, error: null } as const;

/** Parameters that only choose the visible part of the data. */
const RANGE_WORDS = ["x0", "x1", "px", "rows"];

/** What has just changed is requested again soon: a logdir is first read in parts. */
const CHANGED_PAUSE_MS = 1_000;

/** Of what is requested once, after a failure: the server may be opening it again. */
const AGAIN_MS = 750;

/** After failures the pause grows up to this. */
const LONGEST_PAUSE_MS = 15_000;

interface Flight {
  readonly path: string;
  readonly subject: string;
  readonly abort: AbortController;
}

export class Watch<R extends Route> {
  #query: Query | null = null;
  #pollMs = Number.POSITIVE_INFINITY;
  #flight: Flight | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #changed = false;
  #answered = "";
  #live: Live<Responses[R]> = NOTHING_YET;
  readonly #unsubscribe: () => void;

  constructor(
    private readonly client: Client,
    private readonly route: R,
    private readonly onChange: (live: Live<Responses[R]>) => void,
    private readonly pulse: Pulse,
  ) {
    this.#unsubscribe = pulse.onShown(() => this.refresh());
  }

  get live(): Live<Responses[R]> {
    return this.#live;
  }

  /** `query` null: no requests; `pollMs` Infinity: until the first answer. */
  ask(query: Query | null, pollMs: number): void {
    const same = query !== null && this.#path(query) === this.#path(this.#query);
    this.#query = query;
    this.#pollMs = pollMs;
    if (same) {
      if (this.#flight === null && this.#failures === 0) this.#schedule();
      return;
    }
    this.#failures = 0;
    if (query === null) {
      this.#stop();
      this.#publish(NOTHING_YET);
      return;
    }
    if (this.#flight !== null && this.#flight.subject !== subject(query)) this.#stop();
    this.#publish({ ...this.#live, stale: this.#live.data !== null });
    if (this.#flight === null) this.#go();
  }

  /** Does nothing while a request is under way. */
  refresh(): void {
    if (this.#query !== null && this.#flight === null) this.#go();
  }

  close(): void {
    this.#unsubscribe();
    this.#query = null;
    this.#stop();
  }

  #path(query: Query | null): string | null {
    return query === null ? null : requestPath(this.route, query);
  }

  #stop(): void {
    this.#flight?.abort.abort();
    this.#flight = null;
    clearTimeout(this.#timer);
  }

  #go(): void {
    const query = this.#query;
    if (query === null) return;
    clearTimeout(this.#timer);
    const flight = {
      path: requestPath(this.route, query),
      subject: subject(query),
      abort: new AbortController(),
    };
    this.#flight = flight;
    this.client.get(this.route, query, flight.abort.signal).then(
      (data) =>
        this.#land(flight, () => {
          this.#failures = 0;
          this.#changed = data !== this.#live.data;
          this.#answered = flight.path;
          const stale = flight.path !== this.#path(this.#query);
          this.#publish({ data, stale, error: null });
        }),
      (error: unknown) =>
        this.#land(flight, () => {
          if (isAbort(error)) return;
          this.#failures += 1;
          this.#changed = false;
          const stale = this.#answered !== flight.path;
          this.#publish({ data: this.#live.data, stale, error: asApiError(error) });
        }),
    );
  }

  /** Ignores an overtaken answer, and goes on with what is due. */
  #land(flight: Flight, handle: () => void): void {
    if (this.#flight !== flight) return;
    this.#flight = null;
    handle();
    if (flight.path === this.#path(this.#query)) this.#schedule();
    else this.#go();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    const isOnce = !Number.isFinite(this.#pollMs);
    if (this.#query === null || (isOnce && this.#failures === 0)) return;
    const pollMs = isOnce ? AGAIN_MS : this.#pollMs;
    const pause = this.#changed
      ? Math.min(pollMs, CHANGED_PAUSE_MS)
      : Math.min(pollMs * 2 ** this.#failures, Math.max(LONGEST_PAUSE_MS, pollMs));
    this.#timer = setTimeout(() => {
      // Hidden pages send no requests; becoming visible sends one at once.
      if (this.pulse.visible()) this.#go();
    }, pause);
  }

  #publish(live: Live<Responses[R]>): void {
    const { data, stale, error } = this.#live;
    if (data === live.data && stale === live.stale && error === live.error) return;
    this.#live = live;
    this.onChange(live);
  }
}

function subject(query: Query): string {
  const rest = Object.entries(query).filter(([name]) => !RANGE_WORDS.includes(name));
  return JSON.stringify(rest.sort());
}

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const message = error instanceof Error ? error.message : "An unknown failure.";
  return new ApiError(message, "this page", "Reload the page.", "decode");
}
