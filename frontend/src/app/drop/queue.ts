/** Dropped files on their way to the server, one after another; apart from the drawing. */

import { isAbort, type ApiError } from "../../api/client";
import type { DropResponse } from "../../api/types.gen";
import { formatBytes } from "../../base/bytes";
import type { DroppedItem } from "./dropped";

/** What went wrong with one of them. */
export interface DropFault {
  readonly name: string;
  readonly what: string;
  readonly remedy: string;
}

export interface DropProgress {
  readonly name: string;
  /** Which file of how many, from 1. */
  readonly index: number;
  readonly count: number;
  /** Of this file's bytes. */
  readonly share: number;
}

export interface DropOutcome {
  readonly taken: readonly DropResponse[];
  readonly faults: readonly DropFault[];
}

type Send = (file: File, onProgress: (share: number) => void) => Promise<DropResponse>;

/** Sends all that can be sent. Ends early where it is called off; never throws. */
export async function sendAll(
  items: readonly DroppedItem[],
  limitBytes: number,
  send: Send,
  onProgress: (progress: DropProgress) => void,
): Promise<DropOutcome> {
  const taken: DropResponse[] = [];
  const faults: DropFault[] = [];
  for (const [i, item] of items.entries()) {
    const refused = refusedHere(item, limitBytes);
    if (refused !== null || item.file === null) {
      if (refused !== null) faults.push(refused);
      continue;
    }
    const at = { name: item.name, index: i + 1, count: items.length };
    onProgress({ ...at, share: 0 });
    try {
      const answer = await send(item.file, (share) => onProgress({ ...at, share }));
      taken.push(answer);
    } catch (error) {
      if (isAbort(error)) break;
      faults.push(faultOf(item.name, error));
    }
  }
  return { taken, faults };
}

function refusedHere(item: DroppedItem, limitBytes: number): DropFault | null {
  const { file, name } = item;
  if (limitBytes === 0) {
    return {
      name,
      what: "Dropping files is switched off (--memboard_drop=false).",
      remedy: "Open it where it lies: memboard open FILE",
    };
  }
  if (file === null) {
    return {
      name,
      what: "This is a folder.",
      remedy: "Drop the files in it, or open it where it lies: memboard open DIR",
    };
  }
  if (file.size > limitBytes) {
    const [size, most] = [formatBytes(file.size), formatBytes(limitBytes)];
    return {
      name,
      what: `The file has ${size}; at most ${most} are taken.`,
      remedy: "Open it where it lies: memboard open FILE",
    };
  }
  return null;
}

function faultOf(name: string, error: unknown): DropFault {
  const { what, remedy } = (error ?? {}) as Partial<ApiError>;
  return {
    name,
    what: typeof what === "string" ? what : "The file could not be sent.",
    remedy: typeof remedy === "string" ? remedy : "Drop it again.",
  };
}
