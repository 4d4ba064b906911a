/**
 * Opens a trace in Perfetto in a tab of its own: pings until it answers, then posts the
 * bytes. They go from this browser to that tab; nothing is uploaded.
 */

import { refusalOf } from "../../../api/client";
import type { RunSummary, TraceResponse } from "../../../api/types.gen";
import { formatBytes } from "../../../base/bytes";

const HOSTED = "https://ui.perfetto.dev";
const ASK_MS = 150;
const PATIENCE_MS = 60_000;

/** Limit of one buffer in a browser. */
export const MOST_BYTES = 2 ** 31 - 1;

export function perfettoAt(where: "hosted" | "local", page: string): URL {
  return where === "hosted" ? new URL(HOSTED) : new URL("./perfetto/index.html", page);
}

/** Waits until the tab answers PING; throws where it does not. */
function answered(tab: Window, origin: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    const timer = window.setInterval(() => {
      if (tab.closed) reject(new Error("its tab was closed"));
      else if (performance.now() - begun > PATIENCE_MS)
        reject(new Error("it does not answer: is it reachable from here?"));
      // The tab may still be an empty page of another origin.
      else tab.postMessage("PING", "*");
    }, ASK_MS);
    signal.addEventListener("abort", () => window.clearInterval(timer));
    window.addEventListener(
      "message",
      ({ source, origin: from, data }: MessageEvent<unknown>) => {
        if (source === tab && from === origin && data === "PONG") resolve();
      },
      { signal },
    );
  });
}

/** Throws before the bytes are fetched where they are too many. */
export function small(response: Response): Response {
  const length = Number(response.headers.get("Content-Length") ?? "0");
  if (length <= MOST_BYTES) return response;
  throw new Error(
    `it has ${formatBytes(length)}, and a browser hands on at most ${formatBytes(MOST_BYTES)}: download it, and open it with Perfetto’s trace_processor`,
  );
}

/** Throws where the bytes are too many after all. */
export async function bytesOf(response: Response): Promise<ArrayBuffer> {
  try {
    return await response.arrayBuffer();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Error(
      "it is larger than this browser can hold in one piece: download it instead",
      { cause: error },
    );
  }
}

/**
 * Must be called while a click is handled, or the browser blocks the tab. The tab is
 * closed where there is no trace. It stays empty until the server answers: one that is
 * closed on its way to another origin may stay open for good.
 */
export async function openInPerfetto(
  place: URL,
  title: string,
  fileName: string,
  trace: () => Promise<Response>,
): Promise<void> {
  const tab = window.open("about:blank", "_blank");
  if (tab === null) {
    throw new Error(
      "the browser let no tab open: allow pop-ups for this page and try again, or download the trace and open it there",
    );
  }
  const abort = new AbortController();
  const orClose = (error: unknown): never => {
    tab.close();
    throw error;
  };
  try {
    const response = await trace().then(small).catch(orClose);
    tab.location.replace(place.href);
    const [buffer] = await Promise.all([
      bytesOf(response).catch(orClose),
      answered(tab, place.origin, abort.signal),
    ]);
    tab.postMessage({ perfetto: { buffer, title, fileName } }, place.origin, [buffer]);
  } finally {
    abort.abort();
  }
}

export function fileUrl(run: string, source: string): string {
  return `./trace_file?${new URLSearchParams({ run, source }).toString()}`;
}

export function mergedUrl(run: string): string {
  return `./trace_merged?${new URLSearchParams({ run }).toString()}`;
}

/** The shown file where it is the only one, else all merged. */
export function perfettoFile(
  { sources }: Pick<TraceResponse, "sources">,
  { id, name }: Pick<RunSummary, "id" | "name">,
): readonly [url: string, name: string] {
  const [only, ...others] = sources.filter(({ kind }) => kind !== "counters");
  return only?.hasFile === true && others.length === 0
    ? [fileUrl(id, only.id), only.name]
    : [mergedUrl(id), `${name}.merged_trace.json.gz`];
}

export function openPerfetto(
  answer: TraceResponse,
  run: RunSummary,
  say: (sentence: string) => void,
): void {
  const place = perfettoAt(answer.perfetto, document.baseURI);
  const [url, fileName] = perfettoFile(answer, run);
  say("Sending the trace to Perfetto’s tab");
  openInPerfetto(place, run.name, fileName, async () => {
    const response = await fetch(url, { cache: "no-store" });
    if (response.ok) return response;
    throw refusalOf(response.status, response.statusText, await response.text(), "");
  }).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    say(`Perfetto was not given the trace: ${why}`);
  });
}
