/** The only request that changes anything; no other page may set its header. */

import { ApiError, refusalOf } from "../api_error";
import { decode } from "../decode";
import type { DropResponse } from "../types.gen";

export const DROP_HEADER = "X-MemBoard-Drop";

/** Throws `ApiError`, or an AbortError when the signal fires. */
export async function sendDrop(
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<DropResponse> {
  signal.throwIfAborted();
  // `fetch` reports no upload progress.
  const upload = new XMLHttpRequest();
  await new Promise<void>((resolve, reject) => {
    signal.addEventListener("abort", () => upload.abort());
    upload.onload = () => resolve();
    upload.onabort = () =>
      reject(new DOMException("The upload was called off.", "AbortError"));
    upload.onerror = () =>
      reject(
        new ApiError(
          "The file did not reach TensorBoard.",
          file.name,
          "Check that TensorBoard still runs and drop the file again, or open it where " +
            "it lies: memboard open FILE",
          "network",
        ),
      );
    upload.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / Math.max(1, event.total));
    };
    upload.open("POST", `./drop?name=${encodeURIComponent(wellFormed(file.name))}`);
    upload.responseType = "arraybuffer";
    upload.setRequestHeader(DROP_HEADER, "1");
    upload.setRequestHeader("Content-Type", "application/octet-stream");
    upload.send(file);
  });
  const { status, statusText } = upload;
  const answer: unknown = upload.response;
  const body = answer instanceof ArrayBuffer ? answer : new ArrayBuffer(0);
  if (status !== 200) {
    throw refusalOf(status, statusText, new TextDecoder().decode(body), file.name);
  }
  return decode("drop", body, file.name);
}

/** A name may hold half a surrogate pair, which a URL cannot. */
function wellFormed(name: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(name));
}
