import { ApiError, isAbort } from "../../api/client";
import type { DropResponse } from "../../api/types.gen";
import { formatBytes } from "../../base/bytes";

export interface DroppedItem {
  /** null: a directory, whose files a page may not read unasked. */
  readonly file: File | null;
  readonly name: string;
}

export interface DropFault {
  readonly name: string;
  readonly message: string;
  readonly remedy: string;
}

export interface DropProgress {
  readonly name: string;
  /** From 1. */
  readonly index: number;
  readonly count: number;
  /** Of this file's bytes. */
  readonly share: number;
}

type Send = (file: File, onProgress: (share: number) => void) => Promise<DropResponse>;

/** Stops early when aborted; never throws. */
export async function sendAll(
  items: readonly DroppedItem[],
  limitBytes: number,
  send: Send,
  onProgress: (progress: DropProgress) => void,
) {
  const taken: DropResponse[] = [];
  const faults: DropFault[] = [];
  for (const [i, { file, name }] of items.entries()) {
    const refused = refusal(file, limitBytes);
    if (refused !== null || file === null) {
      const [message = "", remedy = ""] = refused ?? [];
      faults.push({ name, message, remedy });
      continue;
    }
    const position = { name, index: i + 1, count: items.length };
    onProgress({ ...position, share: 0 });
    try {
      taken.push(await send(file, (share) => onProgress({ ...position, share })));
    } catch (error) {
      if (isAbort(error)) break;
      faults.push(faultOf(name, error));
    }
  }
  return { taken, faults };
}

/** null: the file is sent. */
function refusal(file: File | null, limitBytes: number) {
  const inPlace = "Open it where it lies: memboard open";
  if (limitBytes === 0) {
    const message = "Dropping files is switched off (--memboard_drop=false).";
    return [message, `${inPlace} FILE`] as const;
  }
  if (file === null)
    return ["This is a folder.", `Drop the files in it. ${inPlace} DIR`] as const;
  if (file.size <= limitBytes) return null;
  const [size, most] = [formatBytes(file.size), formatBytes(limitBytes)];
  const message = `The file has ${size}; at most ${most} are taken.`;
  return [message, `${inPlace} FILE`] as const;
}

function faultOf(name: string, error: unknown): DropFault {
  const isOurs = error instanceof ApiError;
  return {
    name,
    message: isOurs ? error.message : "The file could not be sent.",
    remedy: isOurs ? error.remedy : "Drop it again.",
  };
}
