/**
 * Answers are cached with their ETag: an unchanged one costs a 304 and is the same
 * object.
 */

import { ApiError, isAbort, refusalOf } from "./api_error";
import { decode } from "./decode";
import type { Responses } from "./types.gen";

export { ApiError, isAbort, refusalOf, worthSaying } from "./api_error";

export type Route = keyof Responses;

/** null and "" omit a parameter. */
export type Query = Readonly<Record<string, string | number | null>>;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** The server draws no larger pictures. */
const MOST_PIXELS = 8192;

/** Cached answers; a heatmap of a full screen is about 4 MB. */
const MAX_KEPT = 24;

interface CachedAnswer {
  readonly etag: string;
  readonly value: unknown;
}

export class Client {
  /** Unit of sizes in the server's sentences; "" picks one for each size. */
  unit = "";
  readonly #fetch: Fetch;
  readonly #folder: string;
  readonly #kept = new Map<string, CachedAnswer>();
  readonly #ahead = new Map<string, Promise<Response>>();

  /** `folder`: of the routes, relative to the page. */
  constructor(folder = "./", fetcher: Fetch = (url, init) => fetch(url, init)) {
    this.#folder = folder;
    this.#fetch = fetcher;
  }

  /** Prefetches; the first `get` of the same request takes the answer. */
  ahead(route: Route, query: Query): void {
    const url = this.#folder + requestPath(route, query);
    const answer = this.#fetch(url, { cache: "no-store" });
    // The `get` that takes it reports the failure.
    answer.catch(() => null);
    this.#ahead.set(url, answer);
  }

  /** Throws `ApiError`, or an AbortError. `keep` false: the caller caches the answer. */
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

  #keep(url: string, kept: CachedAnswer): void {
    this.#kept.delete(url);
    this.#kept.set(url, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

/** A lost connection becomes an `ApiError`. */
async function orLost<T>(message: string, fetched: () => Promise<T>): Promise<T> {
  try {
    return await fetched();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError(
      message,
      "",
      "Check that TensorBoard still runs and can be reached. The page retries automatically.",
      "network",
    );
  }
}

/** `timeline?run=a&rank=3`; sorted, so that equal queries share an ETag. */
export function requestPath(route: Route, query: Query): string {
  const params = new URLSearchParams();
  for (const name of Object.keys(query).sort()) {
    let value = query[name] ?? "";
    if ((name === "px" || name === "rows") && value !== "")
      value = Math.min(Number(value), MOST_PIXELS);
    if (value !== "") params.set(name, value.toString());
  }
  const text = params.toString();
  return text === "" ? route : `${route}?${text}`;
}
