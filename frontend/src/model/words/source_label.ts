import type { CapacityKind } from "../../api/types.gen";
import { sentenceCase } from "./sentence_case";

const LABELS: ReadonlyMap<string, string> = new Map([
  ["device", "Device memory"],
  ["device_free", "Device memory free"],
  ["activations", "Saved activations"],
  ["functions", "Memory around functions"],
  ["functions.device", "Device memory around functions"],
  ["gpu", "GPU sensors"],
  ["history", "Allocator history"],
  ["hooks", "Hooks on modules"],
  ["memory", "Host memory"],
  ["modules", "Module memory"],
  ["pinned", "Pinned host memory"],
  ["process", "Process CPU and memory"],
  ["process_full", "Process memory in detail"],
  ["rss", "Process RSS at each step"],
  ["workers", "Dataloader workers"],
]);

export function sourceLabel(source: string): string {
  const label = LABELS.get(source);
  if (label !== undefined) return label;
  // A part of a source: `history.metadata`.
  const [whole = "", ...parts] = source.split(".");
  const first = LABELS.get(whole) ?? sentenceCase(whole);
  return parts.length === 0
    ? first
    : `${first}: ${parts.join(" ").replaceAll("_", " ")}`;
}

/** A reason as a sentence of its own: "the host has no swap" -> "The host has no swap." */
export function asSentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const end = /[.!?:]$/.test(trimmed) ? "" : ".";
  return trimmed.charAt(0).toUpperCase() + trimmed.slice(1) + end;
}

/** The same words on every page. */
export const LIMIT_WORDS: Readonly<Record<CapacityKind, string>> = {
  device: "device capacity",
  cgroup_limit: "memory limit",
  host_memory: "host memory",
  none: "",
};
