/**
 * What of a page stands in the URL, each word declared once: its name, how it is read and
 * checked, what it is where nothing is said, and how it is written.
 */

import { useMemo } from "preact/hooks";
import type { Changes, ViewProps } from "./view_props";

export type Params = ReadonlyMap<string, string>;

/** A value of the page and its word, or words, of the URL. */
export interface Word<T> {
  /** What is not well written is as if it were not there. */
  read(params: Params): T;
  /** null removes a word: what is usual needs none. */
  write(value: T): Changes;
}

type Schema = Readonly<Record<string, Word<unknown>>>;

export type PageState<S extends Schema> = {
  readonly [K in keyof S]: S[K] extends Word<infer T> ? T : never;
};

function word<T>(
  name: string,
  parse: (text: string) => T,
  write: (value: T) => string | null,
): Word<T> {
  return {
    read: (params) => parse(params.get(name) ?? ""),
    write: (value) => ({ [name]: write(value) }),
  };
}

/** Any text; "" where nothing is said. */
export function text(name: string): Word<string> {
  return word(name, String, (value) => (value === "" ? null : value));
}

/** A text that may be absent, as queries have it. */
export function optional(name: string): Word<string | null> {
  return word<string | null>(
    name,
    (said) => (said === "" ? null : said),
    (value) => value,
  );
}

/** One of some words; `usual` where none of them is said. */
export function oneOf<T extends string, U extends T | null>(
  name: string,
  words: readonly T[],
  usual: U,
): Word<T | U> {
  return word<T | U>(
    name,
    (said) => words.find((one) => one === said) ?? usual,
    (value) => (value === usual ? null : value),
  );
}

/** `name=1`. */
export function flag(name: string): Word<boolean> {
  return word(
    name,
    (said) => said === "1",
    (value) => (value ? "1" : null),
  );
}

/** A whole number of at least `least`. */
export function whole(name: string, least = 0): Word<number | null> {
  return word<number | null>(
    name,
    (said) => (/^-?\d{1,12}$/.test(said) && +said >= least ? Number(said) : null),
    (value) => (value === null ? null : String(value)),
  );
}

/** A number between two others; `low`, its usual value, is left out. */
export function between(name: string, low: number, high: number): Word<number> {
  return word(
    name,
    (said) => {
      const value = Number.parseFloat(said);
      return value > low ? Math.min(value, high) : low;
    },
    (value) => (value > low ? String(value) : null),
  );
}

export function readState<S extends Schema>(schema: S, params: Params): PageState<S> {
  const read = Object.entries(schema).map(([key, one]) => [key, one.read(params)]);
  return Object.fromEntries(read) as PageState<S>;
}

/** The words of the URL that say what changes; for `setParams` and `showPage`. */
export function writeState<S extends Schema>(
  schema: S,
  changes: Partial<PageState<S>>,
): Changes {
  const written = Object.entries(changes).map(([key, value]) =>
    schema[key]?.write(value),
  );
  return Object.assign({}, ...written) as Changes;
}

/** The page's state, and how it changes: "push" for what the back button should undo. */
export function usePageState<S extends Schema>(
  { params, setParams }: Pick<ViewProps, "params" | "setParams">,
  schema: S,
): readonly [
  PageState<S>,
  (changes: Partial<PageState<S>>, how?: "replace" | "push") => void,
] {
  const state = useMemo(() => readState(schema, params), [schema, params]);
  return [state, (changes, how) => setParams(writeState(schema, changes), how)];
}
