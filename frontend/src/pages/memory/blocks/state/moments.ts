/** Where the page begins to look, and how high its picture is. Pure. */

import type { HistoryDevice, HistoryLevel } from "../../../../api/types.gen";

/** Room above the highest line. */
const HEADROOM = 1.05;
/** Reserved memory beyond this much of what is live would press the blocks flat. */
const MOST_RESERVED = 1.7;
/** The device's own size is a line of the picture where it is nearer than this. */
const MOST_CAPACITY = 1.3;

function peakOf(device: HistoryDevice, level: HistoryLevel) {
  return device.peaks.find((peak) => peak.level === level);
}

/** The first out-of-memory error, else the highest moment. */
export function firstMoment(device: HistoryDevice): number {
  const { kind, kinds, moment } = device.marks;
  const at = kind.findIndex((code) => kinds[code] === "oom");
  return at >= 0 ? (moment[at] ?? -1) : (peakOf(device, "active")?.moment ?? -1);
}

/** What a moment is besides its number; empty: nothing of note. */
export function momentName(device: HistoryDevice, at: number): string {
  const { kind, kinds, moment } = device.marks;
  const out = kind.some((code, i) => kinds[code] === "oom" && moment[i] === at);
  const names = [
    out ? "out of memory" : "",
    peakOf(device, "active")?.moment === at ? "the peak of this history" : "",
  ];
  return names.filter((name) => name !== "").join(", ");
}

/** Bytes at the top of the picture. */
export function topOf(device: HistoryDevice): number {
  const active = peakOf(device, "active")?.bytes ?? 0;
  const reserved = peakOf(device, "reserved")?.bytes ?? 0;
  let top = Math.max(active, 1);
  if (reserved <= MOST_RESERVED * active) top = Math.max(top, reserved);
  const capacity = device.capacityBytes;
  if (capacity !== null && capacity <= MOST_CAPACITY * top)
    top = Math.max(top, capacity);
  return top * HEADROOM;
}
