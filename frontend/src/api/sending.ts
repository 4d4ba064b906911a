/**
 * Sends a file that was dropped onto the page: the one request that changes anything.
 * The header is what the server knows our page by; no other page may set it.
 */

import { ApiError, refusalOf } from "./api_error";
import { decode } from "./decode";
import type { DropResponse } from "./types.gen";

export const DROP_HEADER = "X-MemBoard-Drop";

/** The part of XMLHttpRequest used here: `fetch` does not tell how much was sent. */
export interface Upload {
  readonly status: number;
  readonly statusText: string;
  readonly response: unknown;
  readonly upload: { onprogress: ((event: ProgressEvent) => unknown) | null };
  responseType: XMLHttpRequestResponseType;
  onload: ((event: ProgressEvent) => unknown) | null;
  onerror: ((event: ProgressEvent) => unknown) | null;
  onabort: ((event: ProgressEvent) => unknown) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  send(body: Blob): void;
  abort(): void;
}

export interface Sending {
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
  /** Where the routes lie, seen from the page. */
  readonly folder?: string;
  readonly makeUpload?: () => Upload;
}

/** Throws `ApiError`, or a DOMException named AbortError when the signal fires. */
export async function sendDrop(file: File, sending: Sending): Promise<DropResponse> {
  const { onProgress, signal, folder = "./" } = sending;
  const upload = (sending.makeUpload ?? (() => new XMLHttpRequest()))();
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => upload.abort();
    const settle = (end: () => void): (() => void) => {
      return () => {
        signal.removeEventListener("abort", abort);
        end();
      };
    };
    signal.addEventListener("abort", abort);
    upload.onload = settle(resolve);
    upload.onabort = settle(() =>
      reject(new DOMException("The upload was called off.", "AbortError")),
    );
    upload.onerror = settle(() =>
      reject(
        new ApiError(
          "The file did not reach TensorBoard.",
          file.name,
          "Check that TensorBoard still runs and drop the file again, or open it where " +
            "it lies: memboard open FILE",
          "network",
        ),
      ),
    );
    upload.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / Math.max(1, event.total));
    };
    upload.open(
      "POST",
      `${folder}drop?name=${encodeURIComponent(wellFormed(file.name))}`,
    );
    upload.responseType = "arraybuffer";
    upload.setRequestHeader(DROP_HEADER, "1");
    upload.setRequestHeader("Content-Type", "application/octet-stream");
    upload.send(file);
  });
  return answerOf(upload, file);
}

async function answerOf(
  { status, statusText, response }: Upload,
  file: File,
): Promise<DropResponse> {
  const body = response instanceof ArrayBuffer ? response : new ArrayBuffer(0);
  if (status !== 200) {
    throw refusalOf(status, statusText, new TextDecoder().decode(body), file.name);
  }
  return decode("drop", body, file.name);
}

/** A name may hold half a character, which a URL cannot. */
function wellFormed(name: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(name));
}
