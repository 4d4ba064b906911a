/** `step/allocated_peak_bytes` -> "Allocated peak"; new columns have labels too. */

const SUFFIXES = [
  "_bytes_per_second",
  "_per_second",
  "_bytes",
  "_seconds",
  "_pct",
  "_celsius",
  "_watts",
] as const;

const ACRONYMS = new Map(
  ["CPU", "GPU", "RSS", "VMS", "USS", "PSS", "IO", "NVML", "FDs", "OOM", "OOMs"].map(
    (word) => [word.toLowerCase(), word],
  ),
);

/** Names that say too little beside their neighbours. */
const SPECIAL: ReadonlyMap<string, string> = new Map([
  ["process_rss_bytes", "RSS between steps"],
  ["process_uss_bytes", "USS (not shared)"],
  ["process_pss_bytes", "PSS (shared pages divided)"],
  ["process_shared_bytes", "Shared"],
  ["workers_rss_bytes", "Dataloader workers RSS"],
]);

export function columnLabel(name: string): string {
  const plain = name.slice(name.lastIndexOf("/") + 1);
  const special = SPECIAL.get(plain);
  if (special !== undefined) return special;
  const column = plain.replace(/^num_/, "");
  const suffix = SUFFIXES.find((one) => column.endsWith(one));
  const stem = suffix === undefined ? column : column.slice(0, -suffix.length);
  return sentenceCase(stem);
}

/** `rank_lost` -> "Rank lost", with acronyms as they are written. */
export function sentenceCase(name: string): string {
  const words = name
    .split(/[_\s]+/)
    .filter(Boolean)
    .map((word) => ACRONYMS.get(word) ?? word);
  const [first = "", ...rest] = words;
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest].join(" ");
}
