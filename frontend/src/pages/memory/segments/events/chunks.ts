/** Pieces of the list of events, asked for as they come into sight. */

import {
  isAbort,
  type ApiError,
  type Client,
  type Query,
} from "../../../../api/client";
import type { AllocatorEventsResponse } from "../../../../api/types.gen";

/** Rows asked for at once. */
const CHUNK_ROWS = 400;
const MOST_KEPT = 24;
const RETRY_MS = 1_500;

/** One row of the list. */
export interface EventRow {
  readonly chunk: AllocatorEventsResponse;
  /** Row of the chunk's columns. */
  readonly at: number;
}

/** Which chunks a stretch of rows needs. */
function chunksOf(first: number, end: number): readonly number[] {
  const from = Math.floor(Math.max(0, first) / CHUNK_ROWS);
  const to = Math.floor(Math.max(first, end - 1) / CHUNK_ROWS);
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
}

export class EventChunks {
  readonly #client: Pick<Client, "get">;
  readonly #onChange: (error: ApiError | null) => void;
  #place: Query = {};
  #subject = "";
  readonly #kept = new Map<number, AllocatorEventsResponse>();
  readonly #flights = new Map<number, AbortController>();
  #wanted: readonly number[] = [];
  #retry: ReturnType<typeof setTimeout> | null = null;

  constructor(client: Pick<Client, "get">, onChange: (error: ApiError | null) => void) {
    this.#client = client;
    this.#onChange = onChange;
  }

  /** run, history, device, actions; another one drops everything. */
  about(place: Query): void {
    const subject = JSON.stringify(place);
    if (subject === this.#subject) return;
    this.#subject = subject;
    this.#place = place;
    this.close();
    this.#kept.clear();
  }

  /** Rows in sight; what scrolled away is given up. */
  want(first: number, end: number): void {
    this.#wanted = chunksOf(first, end);
    for (const [chunk, abort] of this.#flights) {
      if (this.#wanted.includes(chunk)) continue;
      abort.abort();
      this.#flights.delete(chunk);
    }
    this.#next();
  }

  row(index: number): EventRow | null {
    const chunk = this.#kept.get(Math.floor(index / CHUNK_ROWS));
    const at = index % CHUNK_ROWS;
    return chunk === undefined || at >= chunk.event.length ? null : { chunk, at };
  }

  close(): void {
    for (const abort of this.#flights.values()) abort.abort();
    this.#flights.clear();
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
  }

  #next(): void {
    if (this.#retry !== null) return;
    for (const chunk of this.#wanted) {
      if (this.#kept.has(chunk) || this.#flights.has(chunk)) continue;
      const abort = new AbortController();
      this.#flights.set(chunk, abort);
      const query = { ...this.#place, e0: chunk * CHUNK_ROWS, count: CHUNK_ROWS };
      this.#client.get("allocator_events", query, abort.signal).then(
        (answer) => {
          if (this.#flights.get(chunk) !== abort) return;
          this.#flights.delete(chunk);
          this.#kept.set(chunk, answer);
          const [oldest] = this.#kept.keys();
          if (this.#kept.size > MOST_KEPT && oldest !== undefined) {
            this.#kept.delete(oldest);
          }
          this.#onChange(null);
        },
        (error: unknown) => {
          if (this.#flights.get(chunk) !== abort) return;
          this.#flights.delete(chunk);
          if (isAbort(error)) return;
          this.#retry ??= setTimeout(() => {
            this.#retry = null;
            this.#next();
          }, RETRY_MS);
          this.#onChange(error as ApiError);
        },
      );
    }
  }
}
