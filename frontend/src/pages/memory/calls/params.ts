import type { FunctionStat } from "../../../api/types.gen";
import { searchOf } from "../../../model/shown_rows";
import { optional, whole, type Word } from "../../shared/page_state";

export const SIDES = ["start", "end", "difference"] as const;
export type Side = (typeof SIDES)[number];

const sides: Word<readonly Side[]> = {
  read: (params) => {
    const names = params.get("sides")?.split(",") ?? [];
    const namedSides = SIDES.filter((side) => names.includes(side));
    return namedSides.length === 0 ? SIDES : namedSides;
  },
  write: (value) => ({ sides: value.length === SIDES.length ? null : value.join() }),
};

export const CALLS = {
  // Where unset, the server chooses and returns its choice.
  function: optional("function"),
  phase: optional("phase"),
  attempt: whole("attempt"),
  iteration: whole("iteration"),
  stat: optional("stat"),
  stats: optional("stats"),
  sides,
};

export function sidesAfterClick(shown: readonly Side[], side: Side): readonly Side[] {
  const next = SIDES.filter((option) => shown.includes(option) !== (option === side));
  return next.length === 0 ? [side] : next;
}

/** null: only the drawn statistic, which is the default. */
export function statsAfterClick(
  stats: readonly FunctionStat[],
  shown: readonly string[],
  drawn: string | undefined,
  clicked: string,
): string | null {
  const next = stats
    .map(({ name }) => name)
    .filter((name) => shown.includes(name) !== (name === clicked))
    .join();
  return next === "" || next === drawn ? null : next;
}

export const GROUP_WORDS: Readonly<Record<FunctionStat["group"], string>> = {
  device: "Device memory",
  process: "Process",
  hook: "Hooks of the root module",
};

export function foundStats(
  stats: readonly FunctionStat[],
  typed: string,
): readonly FunctionStat[] {
  const search = searchOf(typed);
  const order = Object.keys(GROUP_WORDS);
  return stats
    .filter(({ name, label }) => search?.(`${name} ${label}`) !== false)
    .toSorted((a, b) => order.indexOf(a.group) - order.indexOf(b.group));
}
