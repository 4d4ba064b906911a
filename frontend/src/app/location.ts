/**
 * The page's state as words of a URL's hash, and back; pure.
 *
 * Inside TensorBoard the words stand in the parent's hash as TensorBoard's plugins write
 * them, `#memboard&p.memboard.view=timeline&p.memboard.rank=12`; on its own the page
 * uses its own hash, `#view=timeline&rank=12`. Words of others are left as they are.
 */

import { BYTE_UNITS, type ByteUnit, isByteUnit } from "../base/bytes";
import { formatRankSet, parseRankSet } from "../base/rank_set";

const PLUGIN = "memboard";
const PREFIX = `p.${PLUGIN}.`;

export interface Place {
  /** Name of the view; "" for the first. */
  readonly view: string;
  /** RunSummary.id; "" for the newest run. */
  readonly run: string;
  readonly rank: number | null;
  /** The ranks to draw, as typed; "" for all. */
  readonly ranks: string;
  readonly pinned: readonly number[];
  readonly unit: ByteUnit;
  /** The views' own words. They are shared: `x0` means the same on each. */
  readonly params: ReadonlyMap<string, string>;
}

export const START: Place = {
  view: "",
  run: "",
  rank: null,
  ranks: "",
  pinned: [],
  unit: BYTE_UNITS[0],
  params: new Map(),
};

const SHELL_WORDS = ["view", "run", "rank", "ranks", "pinned", "unit"];

/** A word that belongs to the shell may not be written by a view. */
function isShellWord(name: string): boolean {
  return SHELL_WORDS.includes(name);
}

function placeOf(words: ReadonlyMap<string, string>): Place {
  const rank = words.get("rank") ?? "";
  const unit = words.get("unit") ?? "";
  const ranks = parseRankSet(words.get("ranks") ?? "");
  const pinned = parseRankSet(words.get("pinned") ?? "");
  return {
    view: words.get("view") ?? "",
    run: words.get("run") ?? "",
    rank: /^\d{1,9}$/.test(rank) ? Number(rank) : null,
    ranks: ranks.ok ? formatRankSet(ranks.ranks) : "",
    pinned: pinned.ok ? pinned.ranks : [],
    unit: isByteUnit(unit) ? unit : "auto",
    params: new Map([...words].filter(([name]) => !isShellWord(name))),
  };
}

function wordsOf(place: Place): [string, string][] {
  const words: [string, string][] = [
    ["view", place.view],
    ["run", place.run],
    ["rank", place.rank === null ? "" : place.rank.toString()],
    ["ranks", place.ranks],
    ["pinned", formatRankSet(place.pinned)],
    ["unit", place.unit === "auto" ? "" : place.unit],
    ...[...place.params].sort(([a], [b]) => (a < b ? -1 : 1)),
  ];
  return words.filter(([, value]) => value !== "");
}

/** Null where the hash shows another tab of TensorBoard. */
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

/** The hash that shows `place`, keeping what others put into the current one. */
export function writeHash(current: string, place: Place, embedded: boolean): string {
  const words = wordsOf(place);
  if (!embedded) return `#${joinWords(words)}`;
  const others = splitHash(current).filter(
    ([name, value]) => value !== "" && !name.startsWith(PREFIX),
  );
  const own = words.map(([name, value]): [string, string] => [PREFIX + name, value]);
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

function joinWords(words: readonly (readonly [string, string])[]): string {
  return words.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
}

/** A hash typed by hand may hold a broken escape; it is then taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Commas, slashes and colons stay readable: they are legal in a hash. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|2F|3A)/g, decodeURIComponent);
}

export function samePlace(a: Place, b: Place): boolean {
  return writeHash("", a, false) === writeHash("", b, false);
}

/** A place with some of the views' words changed; null removes a word. */
export function withParams(
  place: Place,
  changes: Readonly<Record<string, string | null>>,
): Place {
  const params = new Map(place.params);
  for (const [name, value] of Object.entries(changes)) {
    if (isShellWord(name)) throw new Error(`“${name}” is a word of the shell`);
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  return { ...place, params };
}
