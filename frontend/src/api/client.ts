/**
 * Asks the plugin's routes. Every answer is kept with its ETag, so asking again for
 * what has not changed costs a 304 and returns the very same object.
 */

import { ApiError, isAbort, refusalOf } from "./api_error";
import { decode } from "./decode";
import type { Responses } from "./types.gen";

export { ApiError, isAbort, refusalOf, worthSaying } from "./api_error";

export type Route = keyof Responses;

/** A route's query; null and "" leave a word out. */
export type Query = Readonly<Record<string, string | number | null>>;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** The server draws no wider and no higher, as no screen is. */
const MOST_PIXELS = 8192;

/** Answers kept; a heatmap of a full screen is about 4 MB. */
const MAX_KEPT = 24;

interface Kept {
  readonly etag: string;
  readonly value: unknown;
}

export class Client {
  /** In which sentences of the server tell sizes; "" for that which fits each. */
  unit = "";
  readonly #fetch: Fetch;
  readonly #folder: string;
  readonly #kept = new Map<string, Kept>();
  readonly #ahead = new Map<string, Promise<Response>>();

  /** `folder` is where the routes lie, seen from the page. */
  constructor(folder = "./", fetcher: Fetch = (url, init) => fetch(url, init)) {
    this.#folder = folder;
    this.#fetch = fetcher;
  }

  /** Ask before anybody needs it: the first `get` of the same takes what comes of it. */
  ahead(route: Route, query: Query): void {
    const url = this.#folder + requestPath(route, query);
    const answer = this.#fetch(url, { cache: "no-store" });
    // Who takes it is told what went wrong.
    answer.catch(() => null);
    this.#ahead.set(url, answer);
  }

  /**
   * Throws `ApiError`, or a DOMException named AbortError when `signal` fires. `keep`
   * false is for answers that their asker keeps, or asks for once.
   */
  async get<R extends Route>(
    route: R,
    query: Query,
    signal?: AbortSignal,
    keep = true,
  ): Promise<Responses[R]> {
    const url = this.#folder + requestPath(route, query);
    const kept = this.#kept.get(url);
    const response = await this.#ask(url, kept?.etag, signal);
    if (response.status === 304 && kept !== undefined) {
      // Sound because `url` begins with the route whose decoder made the value.
      return kept.value as Responses[R];
    }
    if (!response.ok) {
      const body = await response.text().catch(() => "");
      throw refusalOf(response.status, response.statusText, body, "");
    }
    const broken = "The connection broke in the middle of an answer.";
    const body = await orLost(broken, () => response.arrayBuffer());
    const value = await decode(route, body);
    const etag = response.headers.get("ETag");
    if (keep && etag !== null) this.#keep(url, { etag, value });
    return value;
  }

  async #ask(url: string, etag?: string, signal?: AbortSignal): Promise<Response> {
    const init: RequestInit = { cache: "no-store" };
    if (etag !== undefined) init.headers = { "If-None-Match": etag };
    if (signal !== undefined) init.signal = signal;
    const ahead = this.#ahead.get(url);
    this.#ahead.delete(url);
    return orLost("TensorBoard does not answer.", async () => {
      const response = await (ahead ?? this.#fetch(url, init));
      signal?.throwIfAborted();
      return response;
    });
  }

  #keep(url: string, kept: Kept): void {
    this.#kept.delete(url);
    this.#kept.set(url, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

/** What is fetched; a connection that is lost meanwhile as an `ApiError`. */
async function orLost<T>(what: string, fetched: () => Promise<T>): Promise<T> {
  try {
    return await fetched();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError(
      what,
      "",
      "Check that TensorBoard still runs and can be reached. The page retries automatically.",
      "network",
    );
  }
}

/** `timeline?run=a&rank=3`; words in a fixed order, so equal queries share an ETag. */
export function requestPath(route: Route, query: Query): string {
  const words = new URLSearchParams();
  for (const name of Object.keys(query).sort()) {
    let value = query[name] ?? "";
    if ((name === "px" || name === "rows") && value !== "")
      value = Math.min(Number(value), MOST_PIXELS);
    if (value !== "") words.set(name, value.toString());
  }
  const text = words.toString();
  return text === "" ? route : `${route}?${text}`;
}
