/** Which statistics the table shows, and what they are called. Pure. */

import type { FunctionStat } from "../../../api/types.gen";
import { columnLabel } from "../../../model/words/column_label";

/** In the table: those chosen, else the one that is drawn; the others are a choice away. */
export function shownStats(
  stats: readonly FunctionStat[],
  chosen: readonly string[] | null,
  drawn: FunctionStat | null,
): readonly FunctionStat[] {
  const found = stats.filter(({ name }) => chosen?.includes(name) === true);
  return found.length > 0 ? found : stats.filter((stat) => stat === drawn);
}

/** The word after a statistic was switched on or off; null for the one that is drawn. */
export function statsAfterClick(
  stats: readonly FunctionStat[],
  shown: readonly FunctionStat[],
  drawn: FunctionStat | null,
  name: string,
): string | null {
  const next = stats
    .map((stat) => stat.name)
    .filter((one) => shown.some((stat) => stat.name === one) !== (one === name));
  return next.length === 0 || next.join() === drawn?.name ? null : next.join(",");
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
