/** The Functions page's words in the URL, read and checked. Pure. */

import type { Query } from "../../../api/client";

export const SIDES = ["start", "end", "difference"] as const;
export type Side = (typeof SIDES)[number];

export interface FunctionsParams {
  /** "" leaves these to the server; it answers with what it shows. */
  readonly function: string;
  readonly phase: string;
  readonly attempt: string;
  readonly iteration: string;
  /** The statistic drawn over calls and over ranks. */
  readonly stat: string;
  /** Statistics in the table, as recorded; null where none were chosen. */
  readonly stats: readonly string[] | null;
  /** Which sides of a call the table shows; at least one. */
  readonly sides: readonly Side[];
  /** Column of the calls; "" has the newest first. */
  readonly sort: string;
  readonly descending: boolean;
}

export function readFunctions(params: ReadonlyMap<string, string>): FunctionsParams {
  const word = (name: string): string => params.get(name) ?? "";
  const stats = word("stats").split(",").filter(Boolean);
  const sides = word("sides").split(",");
  const known = SIDES.filter((side) => sides.includes(side));
  const sort = word("order");
  return {
    function: word("function"),
    phase: word("phase"),
    attempt: word("attempt"),
    iteration: word("iteration"),
    stat: word("stat"),
    stats: stats.length === 0 ? null : stats,
    sides: known.length === 0 ? SIDES : known,
    sort: sort.replace(/^-/, ""),
    descending: sort.startsWith("-"),
  };
}

export function functionsQuery(
  run: string,
  rank: number | null,
  params: FunctionsParams,
): Query {
  return {
    run,
    rank,
    function: params.function,
    phase: params.phase,
    attempt: params.attempt,
    iteration: params.iteration,
    stat: params.stat,
  };
}

/** The word after a side was switched on or off; the last one stays. */
export function sidesAfterClick(sides: readonly Side[], side: Side): string | null {
  const next = SIDES.filter((one) => sides.includes(one) !== (one === side));
  if (next.length === 0) return side;
  return next.length === SIDES.length ? null : next.join(",");
}

/** The word for a click on a heading: largest first, smallest first, as they came. */
export function orderAfterClick(params: FunctionsParams, key: string): string | null {
  if (params.sort !== key) return `-${key}`;
  return params.descending ? key : null;
}
