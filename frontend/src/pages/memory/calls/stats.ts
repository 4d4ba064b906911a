/** Which statistics the table shows, and what they are called. Pure. */

import type { FunctionStat } from "../../../api/types.gen";
import { columnLabel } from "../../../model/words/column_label";

/** What most questions are about; the others are a choice away. */
const DEFAULTS: readonly string[] = [
  "allocated_bytes.all.current",
  "reserved_bytes.all.current",
  "active_bytes.all.current",
  "rss_bytes",
  "vms_bytes",
];

/** How many stand in the table where none of the defaults was recorded. */
const NUM_FIRST = 5;

export function shownStats(
  stats: readonly FunctionStat[],
  chosen: readonly string[] | null,
): readonly FunctionStat[] {
  if (chosen !== null) {
    const found = stats.filter(({ name }) => chosen.includes(name));
    if (found.length > 0) return found;
  }
  const defaults = stats.filter(({ name }) => DEFAULTS.includes(name));
  return defaults.length > 0 ? defaults : stats.slice(0, NUM_FIRST);
}

/** The word after a statistic was switched on or off; null for the defaults. */
export function statsAfterClick(
  stats: readonly FunctionStat[],
  shown: readonly FunctionStat[],
  name: string,
): string | null {
  const next = stats
    .map((stat) => stat.name)
    .filter((one) => shown.some((stat) => stat.name === one) !== (one === name));
  const defaults = shownStats(stats, null).map((stat) => stat.name);
  if (next.length === 0 || next.join() === defaults.join()) return null;
  return next.join(",");
}

/** torch's names stay as torch spells them, but for the few that everyone reads. */
export function statLabel(name: string): string {
  const current = /^([a-z_]+)_bytes\.all\.current$/.exec(name)?.[1];
  if (current !== undefined) return columnLabel(current);
  if (/^[a-z_]+_bytes$/.test(name)) return columnLabel(name);
  return name.replace(/^hook\./, "");
}

const GROUP_WORDS: Readonly<Record<FunctionStat["group"], string>> = {
  device: "Device memory",
  process: "Process",
  hook: "Hooks of the root module",
};

export interface StatGroup {
  readonly title: string;
  readonly stats: readonly FunctionStat[];
}

/** Statistics by group; those that hold every word typed. */
export function statGroups(
  stats: readonly FunctionStat[],
  text: string,
): readonly StatGroup[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = stats.filter(({ name }) => {
    const line = `${name} ${statLabel(name)}`.toLowerCase();
    return words.every((word) => line.includes(word));
  });
  return (["device", "process", "hook"] as const)
    .map((group) => ({
      title: GROUP_WORDS[group],
      stats: matching.filter((stat) => stat.group === group),
    }))
    .filter((group) => group.stats.length > 0);
}
