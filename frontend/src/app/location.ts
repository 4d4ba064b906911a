/**
 * Inside TensorBoard the state is in the parent's hash, as plugins write it:
 * `#memboard&p.memboard.view=timeline&p.memboard.rank=12`; alone, in the page's own:
 * `#view=timeline&rank=12`. Other words stay as they are.
 */

import { BYTE_UNITS } from "../base/bytes";
import { formatRankSet, parseRankSet } from "../model/words/rank_set";
import {
  oneOf,
  readState,
  text,
  writeState,
  type PageState,
  type Params,
} from "../pages/shared/page_state";

const PLUGIN = "memboard";
const PREFIX = `p.${PLUGIN}.`;

function ranksIn(params: Params, name: string): readonly number[] {
  const read = parseRankSet(params.get(name) ?? "");
  return read.ok ? read.ranks : [];
}

/** No view may write these. */
const SHELL = {
  /** "" for the first tab. */
  view: text("view"),
  /** RunSummary.id; "" for the run that most needs a look. */
  run: text("run"),
  rank: {
    read: (params: Params): number | null => {
      const rankText = params.get("rank") ?? "";
      return /^\d{1,9}$/.test(rankText) ? Number(rankText) : null;
    },
    write: (rank: number | null) => ({ rank: rank?.toString() ?? null }),
  },
  /** As typed; "" for all. */
  ranks: {
    read: (params: Params) => formatRankSet(ranksIn(params, "ranks")),
    write: (ranks: string) => ({ ranks }),
  },
  pinned: {
    read: (params: Params) => ranksIn(params, "pinned"),
    write: (ranks: readonly number[]) => ({ pinned: formatRankSet(ranks) }),
  },
  unit: oneOf("unit", BYTE_UNITS, "auto"),
};

export interface Place extends PageState<typeof SHELL> {
  /** The views' own, and shared: `x0` means the same on each. */
  readonly params: Params;
}

export const START = placeOf(new Map());

function placeOf(params: Params): Place {
  const own = [...params].filter(([name]) => !(name in SHELL));
  return { ...readState(SHELL, params), params: new Map(own) };
}

function wordsOf({ params, ...shell }: Place): (readonly [string, string])[] {
  const own = [...params].sort(([a], [b]) => (a < b ? -1 : 1));
  return [...Object.entries(writeState(SHELL, shell)), ...own].flatMap(
    ([name, value]) => (value === null || value === "" ? [] : [[name, value]]),
  );
}

/** null: the hash shows another tab of TensorBoard. */
export function readHash(hash: string, embedded: boolean): Place | null {
  const parts = splitHash(hash);
  if (!embedded) return placeOf(new Map(parts));
  const tab = parts.find(([, value]) => value === "")?.[0] ?? "";
  if (tab !== "" && tab !== PLUGIN) return null;
  const own = parts
    .filter(([name]) => name.startsWith(PREFIX))
    .map(([name, value]): [string, string] => [name.slice(PREFIX.length), value]);
  return placeOf(new Map(own));
}

/** Preserves what others put into the current hash. */
export function writeHash(current: string, place: Place, embedded: boolean): string {
  const pairs = wordsOf(place);
  if (!embedded) return `#${joinWords(pairs)}`;
  const others = splitHash(current).filter(
    ([name, value]) => value !== "" && !name.startsWith(PREFIX),
  );
  const own = pairs.map(([name, value]): [string, string] => [PREFIX + name, value]);
  return ["#" + PLUGIN, joinWords([...own, ...others])].filter(Boolean).join("&");
}

function splitHash(hash: string): [string, string][] {
  return hash
    .replace(/^#/, "")
    .split("&")
    .filter((part) => part !== "")
    .map((part) => {
      const equals = part.indexOf("=");
      return equals < 0
        ? [decoded(part), ""]
        : [decoded(part.slice(0, equals)), decoded(part.slice(equals + 1))];
    });
}

function joinWords(pairs: readonly (readonly [string, string])[]): string {
  return pairs.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
}

/** A broken escape, typed by hand, stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Commas, slashes and colons are legal in a hash: they stay readable. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|2F|3A)/g, decodeURIComponent);
}

export function samePlace(a: Place, b: Place): boolean {
  return writeHash("", a, false) === writeHash("", b, false);
}

/** null removes a parameter. */
export function withParams(
  place: Place,
  changes: Readonly<Record<string, string | null>>,
): Place {
  const params = new Map(place.params);
  for (const [name, value] of Object.entries(changes)) {
    if (name in SHELL) throw new Error(`“${name}” is a word of the shell`);
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  return { ...place, params };
}
